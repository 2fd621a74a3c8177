/** Completions for a place in a condition. Pure. */
import {
  pickedCompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
} from '@codemirror/autocomplete'
import type { EditorView } from '@codemirror/view'
import type { QueryClient } from '@tanstack/react-query'
import { FUNCTION_SIGNATURES, METHOD_SIGNATURES } from '@tacho/policy/language/signatures.ts'
import { isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { OUTPUT } from '@tacho/policy/language/profile.ts'
import { VARIABLES } from '@tacho/policy/language/variables.ts'
import { api } from '../web/api.ts'
import { eventQuery } from '../runs/queries.ts'

const VARIABLE_CHOICES: Completion[] = Object.entries(VARIABLES)
  .filter(([name]) => name !== OUTPUT)
  .map(([label, { type, description }]) => ({
    label,
    type: 'variable',
    detail: type,
    info: description,
  }))
const LOOPS = ['all', 'exists', 'exists_one', 'filter', 'map']
const FUNCTION_CHOICES: Completion[] = namesOf(FUNCTION_SIGNATURES.keys(), ['has']).map((name) => ({
  label: name,
  apply: `${name}(`,
  type: 'function',
  detail: 'function',
}))
const WORD_CHOICES: Completion[] = ['true', 'false', 'null', 'in'].map((label) => ({ label, type: 'keyword' }))
const METHOD_CHOICES: Completion[] = namesOf(METHOD_SIGNATURES.keys(), LOOPS).map((name) => ({
  label: name,
  apply: `${name}(`,
  type: 'method',
  detail: 'method',
}))

/** Names from signatures, whose keys have the form `name/number of values`. */
function namesOf(keys: Iterable<string>, more: readonly string[]): string[] {
  return [...new Set([...Array.from(keys, (key) => key.split('/')[0] ?? key), ...more])].sort()
}

const IN_TOOL_NAME = /\btool\.name\s*(?:[=!]=\s*|in\s*\[[^\]]*)"([^"]*)$/
const IN_INPUT = /\btool\.input((?:\.\w+)*)\.(\w*)$/
const NAMED_TOOL = /\btool\.name\s*==\s*"([^"]+)"/

/** Completes recorded names too: tools in `tool.name == "`, and fields of their input after `tool.input.`. */
export const completeWith =
  (recorded: Recorded) =>
  async (context: CompletionContext): Promise<CompletionResult | null> => {
    const name = context.matchBefore(IN_TOOL_NAME)
    if (name) {
      const typed = IN_TOOL_NAME.exec(name.text)?.[1] ?? ''
      const recordedTool = { type: 'constant', detail: 'recorded tool', apply: applyName }
      const options = (await recorded.tools()).map((label) => ({ label, ...recordedTool }))
      return { from: context.pos - typed.length, options, validFor: /^[^"]*$/ }
    }
    const input = context.matchBefore(IN_INPUT)
    const tool = NAMED_TOOL.exec(context.state.doc.toString())?.[1]
    if (!input || tool === undefined) return complete(context)
    const [, path = '', typed = ''] = IN_INPUT.exec(input.text) ?? []
    const fields = fieldsAt(await recorded.inputOf(tool), path.split('.').filter(Boolean))
    return { from: context.pos - typed.length, options: [...fields, ...METHOD_CHOICES], validFor: /^\w*$/ }
  }

/** Inserts the whole name with its closing quotation mark, and places the cursor behind it. */
function applyName(view: EditorView, completion: Completion, from: number, to: number): void {
  const insert = JSON.stringify(completion.label).slice(1)
  const isClosed = view.state.sliceDoc(to, to + 1) === '"'
  view.dispatch({
    changes: { from, to: isClosed ? to + 1 : to, insert },
    selection: { anchor: from + insert.length },
    userEvent: 'input.complete',
    annotations: pickedCompletion.of(completion),
  })
}

/** Fields that a condition can name after a dot. */
function fieldsAt(input: unknown, path: readonly string[]): Completion[] {
  let at = input
  for (const name of path) at = isObject(at) && Object.hasOwn(at, name) ? at[name] : null
  if (!isObject(at)) return []
  return Object.entries(at)
    .filter(([label]) => /^[A-Za-z_]\w*$/.test(label))
    .map(([label, value]) => ({ label, type: 'property', detail: typeName(value), boost: 1 }))
}

function typeName(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  return { string: 'string', number: 'double', boolean: 'bool' }[typeof value as string] ?? 'map'
}

function complete(context: CompletionContext): CompletionResult | null {
  const before = context.matchBefore(/[\w.]*/)
  if (!before || (before.from === before.to && !context.explicit)) return null
  const dot = before.text.lastIndexOf('.')
  const isVariable = VARIABLE_CHOICES.some(({ label }) => label.startsWith(before.text) && label !== before.text)
  if (dot >= 0 && !isVariable) return { from: before.from + dot + 1, options: METHOD_CHOICES, validFor: /^\w*$/ }
  return {
    from: before.from,
    options: [...VARIABLE_CHOICES, ...FUNCTION_CHOICES, ...WORD_CHOICES],
    validFor: /^[\w.]*$/,
  }
}

/** Recorded names and inputs for completion: names of tools, and the input of a tool's newest call. */

const DAYS = 30
const TOOLS = 200
const CALLS_READ = 20
const STALE_MS = 60_000

export interface Recorded {
  tools(): Promise<readonly string[]>
  /** Null: no call of this tool was recorded with an input. */
  inputOf(tool: string): Promise<Json | null>
}

export function recordedIn(cache: QueryClient, environmentId: string): Recorded {
  return {
    // Ignore errors: completion then offers less.
    tools: () =>
      cache
        .fetchQuery({
          queryKey: ['recorded tools', environmentId],
          queryFn: () => readTools(environmentId),
          staleTime: STALE_MS,
        })
        .catch(() => []),
    inputOf: (tool) =>
      cache
        .fetchQuery({
          queryKey: ['recorded input', environmentId, tool],
          queryFn: () => readInput(cache, environmentId, tool),
          staleTime: STALE_MS,
        })
        .catch(() => null),
  }
}

async function readTools(environmentId: string): Promise<string[]> {
  const now = Date.now()
  const window = { from: new Date(now - DAYS * 86_400_000).toISOString(), to: new Date(now).toISOString() }
  const query = { ...window, by: 'tool', step: 'window', limit: TOOLS } as const
  const { items } = await api.readUsagePoints({ params: { environmentId }, query })
  return items.flatMap(({ name }) => (name ? [name] : []))
}

async function readInput(cache: QueryClient, environmentId: string, tool: string): Promise<Json | null> {
  const { items } = await api.listOperatorRuns({ params: { environmentId }, query: { tool, limit: 1 } })
  const [run] = items
  if (!run) return null
  const query = { eventType: 'TOOL_CALL', limit: CALLS_READ } as const
  const rows = await api.listEventRows({ params: { environmentId, runId: run.runId }, query })
  // Most clients use the tool's name as label, so read these steps first.
  const likely = rows.items.toSorted((a, b) => Number(b.label.includes(tool)) - Number(a.label.includes(tool)))
  for (const { eventId } of likely) {
    const { event } = await cache.fetchQuery(eventQuery(environmentId, run.runId, eventId))
    const payload = isObject(event.payload) ? event.payload : {}
    if (textAt(payload, 'toolName') === tool && isObject(payload['input'])) return payload['input']
  }
  return null
}
