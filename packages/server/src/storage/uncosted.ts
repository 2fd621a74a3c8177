/**
 * The tokens of model calls whose sender did not say what they cost, by model and length of context: what an estimate
 * needs. A run keeps them as one text, because most runs use one model.
 */
/** Tokens of one or more model calls, in parts that are priced differently. No token is in two parts. */
export interface TokenParts {
  input: number
  cacheRead: number
  cacheWrite: number
  /** Written to be kept for an hour. */
  cacheWrite1h: number
  output: number
  reasoning: number
}

export interface CallTokens extends TokenParts {
  /** The largest threshold of long contexts that the input of the call exceeds; 0 if none. */
  context: number
}

export interface UncostedCalls extends CallTokens {
  /** Empty: the calls name no model, or the run has too many. */
  model: string
  calls: number
}

export const TOKEN_PARTS = [
  'input',
  'cacheRead',
  'cacheWrite',
  'cacheWrite1h',
  'output',
  'reasoning',
] as const satisfies readonly (keyof TokenParts)[]

/** Calls without a cost in an hour or a day, from `at` on. */
export interface UncostedSum extends UncostedCalls {
  at: number
}

/** Further models of a run count as unknown. */
const MOST_PER_RUN = 20

/** Adds a call in place. Returns whether the list got longer. */
export function addUncosted(list: UncostedCalls[], model: string, tokens: CallTokens, own: (text: string) => string) {
  const sameAs = (name: string, context: number) =>
    list.find((calls) => calls.model === name && calls.context === context)
  const known = sameAs(model, tokens.context) ?? (list.length < MOST_PER_RUN ? undefined : sameAs('', 0))
  if (known !== undefined) {
    known.calls++
    for (const part of TOKEN_PARTS) known[part] = Math.min(known[part] + tokens[part], Number.MAX_SAFE_INTEGER)
    return false
  }
  const isFull = list.length >= MOST_PER_RUN
  list.push({ ...tokens, calls: 1, ...(isFull ? { model: '', context: 0 } : { model: own(model) }) })
  return true
}

/** Null: none. */
export function uncostedText(list: readonly UncostedCalls[]): string | null {
  if (list.length === 0) return null
  return JSON.stringify(
    list.map((calls) => [calls.model, calls.context, calls.calls, ...TOKEN_PARTS.map((part) => calls[part])]),
  )
}

/** Whether a text from outside is one that `uncostedText` writes. */
export function isUncosted(text: unknown): boolean {
  if (typeof text !== 'string') return text === null
  try {
    const rows: unknown = JSON.parse(text)
    const isRow = (row: unknown) => Array.isArray(row) && typeof row[0] === 'string' && row.slice(1).every(isCount)
    return Array.isArray(rows) && rows.length <= MOST_PER_RUN + 1 && rows.every(isRow)
  } catch {
    return false
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

export function readUncosted(text: string | null): UncostedCalls[] {
  if (text === null) return []
  const rows = JSON.parse(text) as [string, ...number[]][]
  return rows.map(
    ([model, context = 0, calls = 0, input = 0, cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0, output = 0, last]) => {
      const parts = { input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning: last ?? 0 }
      return { model, context, calls, ...parts }
    },
  )
}
