/**
 * Tools of the Claude Agent SDK: hooks guard and record them.
 *
 *   PreToolUse --authorized--> the tool runs --> PostToolUse, PostToolUseFailure: TOOL_CALL
 *             \--refused----> deny, with the reason
 */
import type { Context } from '../context.ts'
import { attempt } from '../core.ts'
import { ToolBlockedError } from '../guard/blocked.ts'
import type { Authorization } from '../guard/rules.ts'
import type { StopSignal } from '../runtime.ts'
import type { Tacho } from '../tacho.ts'
import { beginPart, fields, number, OpenSpans, set, text, type Fields, type Part } from './host.ts'
import { messagesOf } from './messages.ts'

type Hook = (input: unknown, toolUseId?: string, options?: { signal?: StopSignal }) => Promise<unknown>

interface Pending {
  readonly context: Context
  authorization?: Authorization
}

/** Seconds. After it, Claude Code runs the tool: longer than the longest wait for a person, a day. */
const HOOK_TIMEOUT = 90_000

const GUARD_FAILED = 'The tool was not run, because its guard failed.'

export class AgentTools {
  readonly #tacho: Tacho
  readonly #begin: (sessionId: unknown) => Part
  /** By the id of the tool use. */
  readonly #pending = new OpenSpans<Pending>()
  /** Contexts for subagents, by the id of the tool use that started them. */
  readonly #contexts = new OpenSpans<Context>()

  constructor(tacho: Tacho, begin: (sessionId: unknown) => Part) {
    this.#tacho = tacho
    this.#begin = begin
  }

  /** What a query needs in its options, with the host's own hooks and permissions. */
  options({ hooks, canUseTool }: Fields): Fields {
    const given = fields(hooks)
    const own = (event: string, hook: Hook) => [...matchers(given[event]), { hooks: [hook], timeout: HOOK_TIMEOUT }]
    const recorded: Hook = async (input) => {
      attempt(() => this.#record(fields(input)))
      return {}
    }
    return set({
      hooks: {
        ...given,
        PreToolUse: [
          ...matchers(given['PreToolUse']).map((matcher) => this.#guardMatcher(matcher)),
          { hooks: [this.#judge], timeout: HOOK_TIMEOUT },
        ],
        PostToolUse: own('PostToolUse', recorded),
        PostToolUseFailure: own('PostToolUseFailure', recorded),
      },
      canUseTool: typeof canUseTool === 'function' ? this.#guardPermission(canUseTool) : undefined,
    })
  }

  /** The span of a tool; the subagent that it starts belongs below it. */
  contextOf(toolUseId: unknown): Context | undefined {
    return typeof toolUseId === 'string' ? this.#contexts.get(toolUseId) : undefined
  }

  readonly #judge: Hook = async (input, _toolUseId, options) => {
    const { session_id: sessionId, tool_name: name, tool_input: given, tool_use_id: id } = fields(input)
    const refusal = await this.#refusal(sessionId, String(name), given, String(id), options?.signal)
    return refusal === null ? {} : denied(refusal)
  }

  /** Null if the tool may run; else the reason. Never rejects, because a hook that fails does not stop the tool. */
  async #refusal(
    sessionId: unknown,
    toolName: string,
    input: unknown,
    id: string,
    signal: StopSignal | undefined,
  ): Promise<string | null> {
    try {
      const { core, context: parent } = this.#begin(sessionId)
      const { context } = this.#pending.get(id) ?? beginPart(this.#tacho, parent)
      this.#contexts.set(id, context)
      const authorize = () => this.#tacho.authorize({ toolName, input }, {}, signal)
      this.#pending.set(id, { context, authorization: await core.context.run(context, authorize) })
      return null
    } catch (error) {
      return error instanceof ToolBlockedError ? error.modelText : GUARD_FAILED
    }
  }

  /** A hook of the host may change the input, so that the decision was about another one. */
  #guardMatcher(matcher: Fields): Fields {
    const guard =
      (hook: Hook): Hook =>
      async (input, toolUseId, options) => {
        const output = await hook(input, toolUseId, options)
        const { updatedInput } = fields(fields(output)['hookSpecificOutput'])
        if (updatedInput === undefined) return output
        const changed = (await this.#judge(
          { ...fields(input), tool_input: updatedInput },
          toolUseId,
          options,
        )) as Fields
        return 'hookSpecificOutput' in changed ? changed : output
      }
    const hooks = Array.isArray(matcher['hooks']) ? (matcher['hooks'] as Hook[]) : []
    return { ...matcher, hooks: hooks.map(guard), timeout: HOOK_TIMEOUT }
  }

  /** The same for the host's permission function. */
  #guardPermission(canUseTool: Function) {
    return async (name: string, input: unknown, options: { toolUseID?: string; signal?: StopSignal }) => {
      // Compared as text: the host may change the object in place.
      const before = JSON.stringify(input)
      const answer: unknown = await canUseTool(name, input, options)
      const { behavior, updatedInput = input } = fields(answer)
      if (behavior !== 'allow' || JSON.stringify(updatedInput) === before) return answer
      const refusal = await this.#refusal(undefined, name, updatedInput, String(options.toolUseID), options.signal)
      return refusal === null ? answer : { behavior: 'deny', message: refusal }
    }
  }

  #record(hook: Fields): void {
    const { session_id: sessionId, tool_name: name, tool_input: input, tool_use_id: id } = hook
    const toolName = String(name)
    const { core, context: parent } = this.#begin(sessionId)
    const { context, authorization } = this.#pending.take(String(id)) ?? (beginPart(this.#tacho, parent) as Pending)
    const { inputHash, approvalId } = authorization ?? {}
    const isFailure = hook['hook_event_name'] === 'PostToolUseFailure'
    const payload = set({
      toolName,
      input,
      ...(isFailure ? { error: hook['error'] } : { output: outputOf(hook['tool_response']) }),
      latency: number(hook['duration_ms']),
      inputHash: inputHash ?? undefined,
      approvalId: approvalId ?? undefined,
    })
    const { scope, span } = context
    const eventId = core.record(scope, { type: 'TOOL_CALL', label: toolName, payload, span })
    if (!isFailure) return
    const reasonCode = hook['is_interrupt'] === true ? 'interrupted' : 'tool_error'
    const report = { detectionType: 'TOOL_FAILED', payload: { toolName, reasonCode }, eventId }
    core.context.run(context, () => this.#tacho.reportIssue(report))
  }
}

function matchers(given: unknown): Fields[] {
  return Array.isArray(given) ? given.map(fields) : []
}

function denied(reason: string): Fields {
  const decision = { permissionDecision: 'deny', permissionDecisionReason: reason }
  return { hookSpecificOutput: { hookEventName: 'PreToolUse', ...decision } }
}

/** A tool of an MCP server answers with a list of parts; texts are recorded as text. */
function outputOf(response: unknown): unknown {
  const isParts = Array.isArray(response) && response.every((part) => text(fields(part)['type']) !== undefined)
  return isParts ? messagesOf([{ role: 'tool', content: response }])[0]?.content : response
}
