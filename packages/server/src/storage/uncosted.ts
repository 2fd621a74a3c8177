/** Tokens of a model call by their price: no token is in two parts. `cacheWrite1h`: written to be kept for an hour. */
export const TOKEN_PARTS = ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output', 'reasoning'] as const
export type TokenParts = Record<(typeof TOKEN_PARTS)[number], number>

/** As a context: the calls do not say what they used, so no price applies to them. */
export const UNKNOWN_USAGE = -1

export interface CallTokens extends TokenParts {
  /** The largest long-context threshold that the call's input exceeds; 0: none. Or `UNKNOWN_USAGE`. */
  context: number
}

export interface UncostedCalls extends CallTokens {
  /** Empty: the calls name no model, or the run has too many. */
  model: string
  calls: number
}

/** A run keeps these as one text, because most runs use one model and version. */
export interface RunCalls extends UncostedCalls {
  /** Null: the calls name none, or the run has too many. */
  versionId: string | null
}

/** In an hour or a day, from `at` on. */
export interface UncostedSum extends UncostedCalls {
  at: number
}

/** Calls beyond this many models, contexts and versions count as calls of an unknown model. */
const MOST_PER_RUN = 40

/** Changes `list`. Returns whether it got longer. */
export function addUncosted(
  list: RunCalls[],
  { model, versionId }: Pick<RunCalls, 'model' | 'versionId'>,
  tokens: CallTokens,
  own: (text: string) => string,
): boolean {
  const sameAs = (name: string, context: number, version: string | null) =>
    list.find((calls) => calls.model === name && calls.context === context && calls.versionId === version)
  const isFull = list.length >= MOST_PER_RUN
  const known = sameAs(model, tokens.context, versionId) ?? (isFull ? sameAs('', 0, null) : undefined)
  if (known !== undefined) {
    known.calls++
    for (const part of TOKEN_PARTS) known[part] = Math.min(known[part] + tokens[part], Number.MAX_SAFE_INTEGER)
    return false
  }
  if (isFull) list.push({ ...tokens, calls: 1, model: '', context: 0, versionId: null })
  else list.push({ ...tokens, calls: 1, model: own(model), versionId: versionId && own(versionId) })
  return true
}

export function uncostedText(list: readonly RunCalls[]): string | null {
  if (list.length === 0) return null
  const rows = list.map(({ model, context, calls, versionId, ...parts }) => {
    const counts = [context, calls, ...TOKEN_PARTS.map((part) => parts[part])]
    return versionId === null ? [model, ...counts] : [model, ...counts, versionId]
  })
  return JSON.stringify(rows)
}

const VERSION_AT = 3 + TOKEN_PARTS.length

export function isUncosted(text: unknown): boolean {
  if (typeof text !== 'string') return text === null
  try {
    const rows: unknown = JSON.parse(text)
    const isRow = (row: unknown) =>
      Array.isArray(row) &&
      (row.length === VERSION_AT || row.length === VERSION_AT + 1) &&
      typeof row[0] === 'string' &&
      (isCount(row[1]) || row[1] === UNKNOWN_USAGE) &&
      row.slice(2, VERSION_AT).every(isCount) &&
      row.slice(VERSION_AT).every((version) => typeof version === 'string')
    return Array.isArray(rows) && rows.length <= MOST_PER_RUN + 1 && rows.every(isRow)
  } catch {
    return false
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

export function readUncosted(text: string | null): RunCalls[] {
  if (text === null) return []
  const rows = JSON.parse(text) as Row[]
  return rows.map(
    ([model, context, calls, input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning, versionId = null]) => {
      return { model, context, calls, input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning, versionId }
    },
  )
}

type Row = [
  model: string,
  context: number,
  calls: number,
  input: number,
  cacheRead: number,
  cacheWrite: number,
  cacheWrite1h: number,
  output: number,
  reasoning: number,
  versionId?: string,
]
