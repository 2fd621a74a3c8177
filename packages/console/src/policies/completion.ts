/** What may come next in a condition. Pure. */
import type { Completion, CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { FUNCTION_SIGNATURES, METHOD_SIGNATURES } from '@tacho/policy/signatures.ts'
import { VARIABLES } from '@tacho/policy/variables.ts'

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

export function complete(context: CompletionContext): CompletionResult | null {
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
