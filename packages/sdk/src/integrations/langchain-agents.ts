/**
 * Finds the acting agent of a graph, and handovers between agents: a node or a tool that returns a `Command`, and a node with a
 * model whose conditional edge leads to another node with a model.
 */
import type { Context } from '../recording/context.ts'
import type { Core } from '../core.ts'
import { fields, set, text, withAgent, type Fields } from './host.ts'

/** The agents of one invocation. */
export interface Team {
  /** The first agent, which is the run's. */
  first?: string | undefined
  /** Agents that took over from others. */
  readonly members: Set<string>
  /** The command that a tool returned: its node may return it again. */
  command?: unknown
}

/** A chain, a node or a tool that runs. */
export interface Place {
  context: Context
  team?: Team
  around?: Place | undefined
  isTool?: boolean
  /** Name of the agent that acts here, if it has one. */
  named?: string | undefined
  node?: GraphNode | undefined
  /** A function that chooses the next node of the graph after its node. */
  isEdge?: boolean
  /** In a graph: the node that chose last, and for which step. */
  choice?: { from: string; step: unknown }
}

interface GraphNode {
  readonly name: string
  readonly begun: number
  /** The number that the graph gives this step. */
  readonly step: unknown
  /** The agent of the step. Set if the step called a model. */
  agent?: string
  hasChosen?: boolean
  /** The agent whose edge led to it. */
  chosenBy?: string | undefined
}

const MEMBERS_MAX = 100

/** LangGraph tags the chain of a node with its step, and hides its own nodes. */
export function isNode(tags: unknown, name: string | undefined): name is string {
  if (!Array.isArray(tags) || !name || name.startsWith('__') || tags.includes('langsmith:hidden')) return false
  return tags.some((tag) => typeof tag === 'string' && tag.startsWith('graph:step:'))
}

/** An agent without a name has the name of its node. */
export function agentIn({ lc_agent_name: name, langgraph_checkpoint_ns: path }: Fields): string | undefined {
  return text(name) ?? text(text(path)?.split(':')[0])
}

export function actingAs(context: Context, team: Team, agent: string | undefined): Context {
  return agent === undefined || agent === (context.span.marks?.agent ?? team.first)
    ? context
    : withAgent(context, agent)
}

/** Marks the nodes around the call as agents. If an edge led to one, it took over. */
export function callsModel(core: Core, caller: Place | undefined): void {
  const { named, team } = caller ?? {}
  const inside: Place[] = []
  let first: string | undefined
  for (let place = caller; team && place && !place.isTool; place = place.around) {
    inside.push(place)
    const { node, around } = place
    if (!node) continue
    const to = (first && named) ?? node.name
    first = node.agent = to
    const { chosenBy: from } = node
    node.chosenBy = undefined
    if (!around || from === undefined || from === to) continue
    team.first ??= from
    handOff(core, actingAs(around.context, team, from), team, from, to)
    if (named === undefined) {
      const agent = to === team.first ? undefined : to
      for (const { context } of inside) context.span.marks = { ...context.span.marks, agent }
    }
  }
  if (team) team.first ??= first
}

/** Notes the nodes that an edge chose. Call it at the end of a node. */
export function choose({ isEdge, node, around }: Place, outputs: unknown): void {
  if (!around) return
  if (isEdge && around.node) around.node.hasChosen = isChoice(fields(outputs)['output'])
  if (node?.hasChosen && node.agent) around.choice = { from: node.agent, step: Number(node.step) + 1 }
}

/** Names of nodes or of edges, or a `Send` to each. */
function isChoice(output: unknown): boolean {
  const [one] = [output].flat() as unknown[]
  return /^(?:str|bool)/.test(typeof one) || fields(one)['lg_name'] === 'Send'
}

/** Notes a Command: the graph continues at another node. */
export function noteCommand(core: Core, output: unknown, { context, team }: Place, from: string): void {
  const { lg_name: kind, goto: next, update } = fields(output)
  if (kind !== 'Command' || !team || team.command === output) return
  team.command = output
  const messages = fields(update)['messages']
  const answer = fields(Array.isArray(messages) ? messages.findLast((one) => fields(one)['tool_call_id']) : undefined)
  for (const nextItem of Array.isArray(next) ? next : [next]) {
    const to = text(nextItem) ?? text(fields(nextItem)['node'])
    if (to !== undefined && to !== '__end__' && to !== from)
      handOff(core, context, team, from, to, text(answer['tool_call_id']))
  }
}

function handOff(
  core: Core,
  { scope, span }: Context,
  team: Team,
  from: string,
  to: string,
  toolCallId?: string,
): void {
  team.first ??= from
  if (team.members.size < MEMBERS_MAX) team.members.add(to)
  core.record(scope, { type: 'HANDOFF', label: `${from} to ${to}`, payload: set({ from, to, toolCallId }), span })
}
