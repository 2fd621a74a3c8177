/** What may come next in a condition. Pure. */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { FUNCTION_SIGNATURES, METHOD_SIGNATURES } from '@tacho/policy/signatures.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { VARIABLES } from '@tacho/policy/variables.ts'
import type { Recorded } from './recorded.ts'

const VARIABLE_CHOICES: Completion[] = Object.entries(VARIABLES).map(([label, { type, description }]) => ({
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

/** Signatures go by `name/number of values`. */
function namesOf(keys: Iterable<string>, more: readonly string[]): string[] {
  return [...new Set([...Array.from(keys, (key) => key.split('/')[0] ?? key), ...more])].sort()
}

const IN_TOOL_NAME = /\btool\.name\s*(?:[=!]=\s*|in\s*\[[^\]]*)"([^"]*)$/
const IN_INPUT = /\btool\.input((?:\.\w+)*)\.(\w*)$/
const NAMED_TOOL = /\btool\.name\s*==\s*"([^"]+)"/

/** Completes with what was recorded too: names of tools in `tool.name == "`, and fields of their input after `tool.input.`. */
export const completeWith =
  (recorded: Recorded) =>
  async (context: CompletionContext): Promise<CompletionResult | null> => {
    const name = context.matchBefore(IN_TOOL_NAME)
    if (name) {
      const typed = IN_TOOL_NAME.exec(name.text)?.[1] ?? ''
      const options = (await recorded.tools()).map((label) => ({ label, type: 'constant', detail: 'recorded tool' }))
      return { from: context.pos - typed.length, options, validFor: /^[^"]*$/ }
    }
    const input = context.matchBefore(IN_INPUT)
    const tool = NAMED_TOOL.exec(context.state.doc.toString())?.[1]
    if (!input || tool === undefined) return complete(context)
    const [, path = '', typed = ''] = IN_INPUT.exec(input.text) ?? []
    const fields = fieldsAt(await recorded.inputOf(tool), path.split('.').filter(Boolean))
    return { from: context.pos - typed.length, options: [...fields, ...METHOD_CHOICES], validFor: /^\w*$/ }
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
