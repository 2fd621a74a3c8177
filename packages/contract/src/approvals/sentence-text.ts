/**
 * The sentence of a request, and the sources of its values, as text for people. The text is not escaped: escape what
 * you show.
 */
import type { CallGrounds, InputField, SentencePart, ValueOrigin } from './call-sentence.ts'

export const sentenceText = (sentence: readonly SentencePart[]): string => sentence.map(({ text }) => text).join('')

/** Whether the sentence has more than the tool's name in words. */
export const saysInput = (sentence: readonly SentencePart[]): boolean => sentence.some(({ kind }) => kind !== 'words')

/** `917 EUR`, or null. */
export const amountIn = (sentence: readonly SentencePart[]): string | null =>
  sentence.find(({ kind }) => kind === 'amount')?.text ?? null

/**
 * The text of the button that approves: `Approve 917 EUR`, `Approve: cancel reservation`. Not escaped, like the parts.
 */
export function approveText(sentence: readonly SentencePart[]): string {
  const amount = amountIn(sentence)
  if (amount !== null) return `Approve ${amount}`
  const words = sentence[0]?.kind === 'words' ? sentence[0].text.replace(/[\s·:]+$/u, '') : ''
  return words === '' ? 'Approve' : `Approve: ${words.charAt(0).toLowerCase()}${words.slice(1)}`
}

/** `equals total of get_order, step 4`, `said by the user, step 2`. Not escaped, like its parts. */
export function originText({ kind, label, path, isPart, step }: ValueOrigin): string {
  if (kind === 'user') return `said by the user, step ${step}`
  const where = path === null || path === '' ? 'the result' : path
  return `${isPart ? 'in' : 'equals'} ${where} of ${label}, step ${step}`
}

/** The text for a field whose value appeared nowhere before. */
export function noOriginText(
  { origins, check }: Pick<InputField, 'origins' | 'check'>,
  { isWhole, stepsRead }: Pick<CallGrounds, 'isWhole' | 'stepsRead'>,
): string {
  if (origins === null) return check === 'sealed' ? 'masked: cannot be looked for' : 'too short to tell'
  return isWhole ? 'nowhere in this run' : `not in what could be read of ${stepsRead} steps before`
}
