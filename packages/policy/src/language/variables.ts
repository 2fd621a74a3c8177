import type { History } from '../evaluation/value.ts'

/**
 * The variables of a condition, with CEL types. Every variable always has a value, so a condition fails only if it reads a
 * missing part of `tool.input`.
 */
export const VARIABLES = {
  'tool.name': { type: 'string', description: 'Name of the tool to run' },
  'tool.input': { type: 'map<string, dyn>', description: 'Its input; every number in it is a double' },
  'tool.annotations': {
    type: 'map<string, dyn>',
    description: "What the tool's MCP server says of it, for example readOnlyHint; a claim, not a fact",
  },
  'tool.server': {
    type: 'string',
    description: 'Its MCP server, or ""; beside it, tool.name is the name without mcp__server__',
  },
  'tool.labels': {
    type: 'list<string>',
    description: 'What it does, for example external or destructive, as the labels of tools say',
  },
  'tool.output': { type: 'dyn', description: 'Its output: for labels, and in no policy' },
  'agent.id': { type: 'string', description: 'Stable external agent id, or ""' },
  'agent.name': { type: 'string', description: 'Human-readable agent name, or ""' },
  'run.id': { type: 'string', description: 'External run id, or ""' },
  'run.cost': { type: 'double', description: 'Cost of the model calls of the run so far, in US dollars' },
  'run.totalTokens': { type: 'int', description: 'Tokens used by the run so far' },
  'run.toolCalls': { type: 'int', description: 'Tool calls of the run so far, without this one' },
  'run.labels': {
    type: 'list<string>',
    description: 'Labels of the outputs that the run has read, for example untrusted or private; unknown if some are',
  },
  'run.calls': {
    type: 'list<call>',
    description: 'Its newest 1,000 guarded calls, oldest first: tool, labels, input, ok and decision of each',
  },
  'session.id': { type: 'string', description: 'External session id, or ""' },
  'risk.signals': { type: 'list<string>', description: 'Names of detected risks' },
  now: { type: 'google.protobuf.Timestamp', description: 'Time of the decision' },
} as const satisfies Record<string, { type: string; description: string }>

export type VariableName = keyof typeof VARIABLES

export const VARIABLE_NAMES = Object.keys(VARIABLES) as VariableName[]

/**
 * The facts of a tool call, in plain JavaScript. Missing texts count as "", missing numbers as 0, a missing input
 * and missing annotations as {}, missing signals as []. `now` is Unix time in milliseconds: this package never reads a clock.
 * A fact with the wrong type fails the conditions that need it.
 */
export type Facts = {
  tool: {
    name: string
    /** The tool's MCP server, if the name does not contain it (tool-name.ts). */
    server?: string | null | undefined
    input?: Readonly<Record<string, unknown>> | null | undefined
    annotations?: Readonly<Record<string, unknown>> | null | undefined
    labels?: readonly string[] | null | undefined
    /** Output of the tool, for conditions of labels: no policy reads it. */
    output?: unknown
  }
  agent?: { id?: string | null | undefined; name?: string | null | undefined } | null | undefined
  run?:
    | {
        id?: string | null | undefined
        cost?: number | null | undefined
        totalTokens?: number | null | undefined
        toolCalls?: number | null | undefined
        /** Past of the run; without it, conditions on the past fail. */
        history?: History | null | undefined
      }
    | null
    | undefined
  session?: { id?: string | null | undefined } | null | undefined
  risk?: { signals?: readonly string[] | null | undefined } | null | undefined
  now: number
}
