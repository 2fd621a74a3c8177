/** Facts about a server's tools from its lists: hidden and flagged tools, and the server's descriptions and annotations. */
import type { Run, Tacho } from '@tacho/sdk'
import type { Definitions } from './definitions.ts'
import { fits } from './fits.ts'
import { toolHider, type Agent } from './hidden-tools.ts'
import { isObject, type Json, type Message } from './message.ts'
import type { Misfit } from './unfit-call.ts'

const CONFIGURATION_WAIT_MS = 2_000
/** Tools whose annotations are remembered. */
const TOOLS_MAX = 10_000

interface ToolListParts {
  readonly tacho: Tacho
  readonly definitions: Definitions
  readonly warn: (message: string) => void
  /** Asks the client to list the tools again. */
  readonly announce: () => void
}

export class ToolList {
  readonly #parts: ToolListParts
  /** Tools by name, from the last lists. */
  readonly #listed = new Map<string, { isHidden: boolean; annotations: Json | undefined; inputSchema: unknown }>()
  /** Whether the list is complete. Then a tool that is not listed does not exist. */
  #isWhole = false
  readonly #forgetChanges: () => void
  #agent: Agent = { id: '', name: '' }

  constructor(parts: ToolListParts) {
    this.#parts = parts
    this.#forgetChanges = parts.tacho.configuration.onChange(() => this.#configurationChanged())
  }

  close(): void {
    this.#forgetChanges()
  }

  /** The annotations that the server claims; undefined if it did not list the tool. */
  annotationsOf(name: string): Json | undefined {
    return this.#listed.get(name)?.annotations
  }

  /** Why a call cannot reach its tool, according to the server's list. */
  misfitOf(name: string, input: Json): Misfit | null {
    const tool = this.#listed.get(name)
    if (!tool) return this.#isWhole ? 'unknown_tool' : null
    return fits(input, tool.inputSchema) ? null : 'unfit'
  }

  signalsOf(name: string): string[] {
    const signal = this.#parts.definitions.signalOf(name)
    return signal === null ? [] : [signal]
  }

  /** The answer to tools/list without hidden tools. Reports tools that nobody accepted. */
  async shown(run: Run, agent: Agent, message: Message, line: string): Promise<string> {
    const { tacho } = this.#parts
    const { result } = message
    this.#agent = agent
    const tools = isObject(result) && Array.isArray(result['tools']) ? result['tools'].filter(isObject) : []
    if (!isObject(result) || tools.length === 0) return line
    const isLast = result['nextCursor'] === undefined
    run.within(() => this.#report(tools, isLast))
    await tacho.configuration.ready(CONFIGURATION_WAIT_MS)
    const isHidden = this.#hider()
    this.#isWhole ||= isLast
    if (this.#listed.size + tools.length > TOOLS_MAX) {
      this.#listed.clear()
      this.#isWhole = false
    }
    for (const { name, annotations, inputSchema } of tools.slice(0, TOOLS_MAX)) {
      if (typeof name !== 'string') continue
      this.#listed.set(name, {
        isHidden: isHidden(name),
        annotations: isObject(annotations) ? annotations : undefined,
        inputSchema,
      })
    }
    const shownTools = tools.filter(({ name }) => typeof name !== 'string' || !isHidden(name))
    if (shownTools.length === tools.length) return line
    return JSON.stringify({ ...message, result: { ...result, tools: shownTools } })
  }

  #report(tools: readonly Json[], isLast: boolean): void {
    const { tacho, definitions, warn } = this.#parts
    for (const { name, change, before, after } of definitions.observe(tools, isLast)) {
      const isAdded = change === 'tool_added'
      const what = isAdded ? 'is new since this server was accepted' : `changed since it was accepted (${change})`
      warn(`The tool ${JSON.stringify(name)} ${what}. After a review: tacho mcp-guard accept.`)
      tacho.reportIssue({
        detectionType: isAdded ? 'TOOL_ADDED' : 'TOOL_CHANGED',
        payload: { toolName: name, reasonCode: change, riskSignals: this.signalsOf(name) },
        evidence: { decision: 'WARN', ...(before !== null && { before }), after },
      })
    }
  }

  #configurationChanged(): void {
    if (this.#listed.size === 0) return
    const isHidden = this.#hider()
    if ([...this.#listed].some(([name, was]) => isHidden(name) !== was.isHidden)) this.#parts.announce()
  }

  #hider(): (toolName: string) => boolean {
    return toolHider(this.#parts.tacho.configuration.state.current?.policies ?? [], this.#agent)
  }
}
