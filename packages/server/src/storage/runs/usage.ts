import type { NewPrice } from '@tacho/contract/runs/price.ts'

export interface UsageSums {
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Integer, in units of 1e-9. */
  costNanos: number
}

export interface UsageWindow {
  by: UsageGroup
  /** Inclusive. */
  from: number
  /** Exclusive. */
  to: number
  stepMs: number
  /** For usage by agent in a window of one step: also reads how long people waited. */
  withWaits?: boolean
  /** By user: the only user; by metadata: the key. */
  label?: string | undefined
}

export type UsageGroup = 'agent' | 'model' | 'promptVersion' | 'tool' | 'session' | RunLabel
/** Labels by which usage is summed up from the rows of runs, besides their sessions. */
type RunLabel = 'user' | 'tag' | 'metadata'
export type UsageSort = 'cost' | 'tokens' | 'events' | 'runs' | 'failed'

export interface UsagePointPage {
  limit: number
  /** Undefined: sorted by step and key. Otherwise the window must be one step. */
  sort?: UsageSort | undefined
  /** `value` and `totalTokens`: only for a sorted page. */
  after: { step: number; key: string; value?: number; totalTokens?: number } | null
}

export interface UsagePointRow extends UsageSums {
  step: number
  /** Internal id of the agent, key of the model, tool or session, or id of the prompt version. */
  key: string
  /** Null: a prompt version that the workspace does not have. Empty: no model or tool is named. */
  name: string | null
  /** By tool: number of its calls. */
  events: number
  /** Runs that started in this step; by prompt version, those that first named it then; by model and tool, 0. */
  runs: number
  completed: number
  failed: number
  cancelled: number
  uncosted: UncostedSum[]
  /** Failed, blocked and asked calls of a tool. Null if the point is not a tool's. */
  calls: { errors: number; blocked: number; approvals: number } | null
  value: number
  llm: LatencyRow | null
  tool: LatencyRow | null
  /** Set if requested. */
  waiting: Waiting | null
}

export interface Waiting {
  runs: LatencyRow | null
  approvals: LatencyRow | null
}

/** Percentiles in milliseconds, at most 0.9 % off; with `former` calls, which are in wider buckets, up to 10 %. */
export interface LatencyRow {
  calls: number
  p50: number
  p95: number
  former: number
}

type PointPlace = Pick<UsagePointRow, 'step' | 'key' | 'value' | 'totalTokens'>

// Orders of points, the same as in the SQL statements.

const byKey = (a: PointPlace, b: PointPlace): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)
export const byStep = (a: PointPlace, b: PointPlace): number => a.step - b.step || byKey(a, b)
/** The greatest value first. */
export const byValue = (a: PointPlace, b: PointPlace): number =>
  b.value - a.value || b.totalTokens - a.totalTokens || byKey(a, b)

/** Tokens of a model call by their price: no token is in two parts. `cacheWrite1h`: written to be kept for an hour. */
const TEXT_PARTS = ['input', 'cacheRead', 'cacheWrite', 'cacheWrite1h', 'output', 'reasoning'] as const
/** Few models have separate prices for these. */
export const MEDIA_PARTS = [
  'audioInput',
  'cachedAudio',
  'imageInput',
  'cachedImage',
  'audioOutput',
  'imageOutput',
] as const
export const TOKEN_PARTS = [...TEXT_PARTS, ...MEDIA_PARTS] as const
export type TokenParts = Record<(typeof TOKEN_PARTS)[number], number>

/**
 * Encodes a context whose calls have audio or images, so that sums keep them apart from calls with known prices.
 * Applying it again decodes.
 */
export const withMedia = (context: number): number => -2 - context

/** Context of calls that do not report their usage, so no price applies to them. */
export const UNKNOWN_USAGE = -1

/**
 * Encodes a context, even one with media, of calls whose prompt or completion is unknown, so that their tokens are only
 * a lower bound.
 */
export const withUnknown = (context: number): number => context - UNKNOWN_SIDE
export const hasUnknown = (context: number): boolean => context === UNKNOWN_USAGE || context < -UNKNOWN_SIDE / 2
const UNKNOWN_SIDE = 10_000_000

/** The threshold without these marks. */
export function thresholdOf(context: number): number {
  const known = context < -UNKNOWN_SIDE / 2 ? context + UNKNOWN_SIDE : context
  return known < UNKNOWN_USAGE ? withMedia(known) : known
}

export interface CallTokens extends TokenParts {
  /**
   * The largest long-context threshold that the call's input exceeds; 0: none. Or `UNKNOWN_USAGE`, or a value encoded
   * by `withMedia` or `withUnknown`.
   */
  context: number
}

export interface UncostedCalls extends CallTokens {
  /** Empty: the calls name no model, or the run has too many. */
  model: string
  calls: number
}

/** A run stores these as one text, because most runs use one model and version. */
export interface RunCalls extends UncostedCalls {
  /** Null: the calls name none, or the run has too many. */
  versionId: string | null
}

/** Uncosted calls of an hour or a day, beginning at `at`. */
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
    const row = [model, context, calls, ...TEXT_PARTS.map((part) => parts[part])]
    const media = MEDIA_PARTS.map((part) => parts[part])
    if (media.some((tokens) => tokens > 0)) return [...row, versionId, ...media]
    return versionId === null ? row : [...row, versionId]
  })
  return JSON.stringify(rows)
}

const VERSION_AT = 3 + TEXT_PARTS.length
const WITH_MEDIA = VERSION_AT + 1 + MEDIA_PARTS.length

export function isUncosted(text: unknown): boolean {
  if (typeof text !== 'string') return text === null
  try {
    const rows: unknown = JSON.parse(text)
    const isRow = (row: unknown) =>
      Array.isArray(row) &&
      [VERSION_AT, VERSION_AT + 1, WITH_MEDIA].includes(row.length) &&
      typeof row[0] === 'string' &&
      Number.isSafeInteger(row[1]) &&
      row.slice(2, VERSION_AT).every(isCount) &&
      row
        .slice(VERSION_AT, VERSION_AT + 1)
        .every((id) => typeof id === 'string' || (id === null && row.length === WITH_MEDIA)) &&
      row.slice(VERSION_AT + 1).every(isCount)
    return Array.isArray(rows) && rows.length <= MOST_PER_RUN + 1 && rows.every(isRow)
  } catch {
    return false
  }
}

const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

export function readUncosted(text: string | null): RunCalls[] {
  if (text === null) return []
  const rows = JSON.parse(text) as Row[]
  return rows.map(([model, context, calls, ...rest]) => {
    const versionId = (rest[TEXT_PARTS.length] ?? null) as string | null
    const counts = rest.toSpliced(TEXT_PARTS.length, 1)
    return { model, context, calls, versionId, ...partsOf((at) => (counts[at] ?? 0) as number) }
  })
}

/** `at`: the place of the part in TOKEN_PARTS. */
export function partsOf(tokensAt: (at: number) => number): TokenParts {
  return Object.fromEntries(TOKEN_PARTS.map((part, at) => [part, tokensAt(at)])) as TokenParts
}

/** Tokens in the order of TOKEN_PARTS, with the version between those of text and those of audio and images. */
type Row = [model: string, context: number, calls: number, ...rest: (number | string | null)[]]

export interface PriceRow {
  model: string
  rates: Omit<NewPrice, 'model'>
  changedAt: number
  /** The row is damaged: its rates are 0, and the model has no price. */
  damaged?: true
}

export interface UncostedWindow {
  from: number
  to: number
  agentId: string | null
}

/**
 * A sketch with relative error (DDSketch; Masson, Rim, Lee, VLDB 2019): bounds of neighbouring buckets differ by a constant
 * factor, so a percentile of any sum of rows is as exact as that of one. Rows of former versions have wider buckets, with
 * numbers below `SKETCH`. Percentiles that count these are marked.
 */
const ERROR = 0.009
const FACTOR = (1 + ERROR) / (1 - ERROR)
const LOG_FACTOR = Math.log(FACTOR)

/** Buckets of the sketch are numbered from here. This first one has latencies below a microsecond. */
export const SKETCH = 1_000
/** The bucket that ends at 1 ms. */
const MILLISECOND = 2_000
const SHORTEST_MS = 0.001

const FORMER_PER_DOUBLING = 4

export function bucketOf(latencyMs: number): number {
  return latencyMs < SHORTEST_MS ? SKETCH : MILLISECOND + Math.ceil(Math.log(latencyMs) / LOG_FACTOR)
}

export function formerBucketOf(latencyMs: number): number {
  return latencyMs < 1 ? 0 : Math.floor(Math.log2(latencyMs) * FORMER_PER_DOUBLING) + 1
}

/** A latency at most 0.9 % from each latency of the bucket. */
export function latencyAt(bucket: number): number {
  return bucket === SKETCH ? 0 : (2 * FACTOR ** (bucket - MILLISECOND)) / (FACTOR + 1)
}

/**
 * Both are thousandths of a bucket. HALF_FORMER: half the width of a former bucket. SHOWN: the place inside a bucket of the
 * latency that `latencyAt` returns.
 */
const HALF_FORMER = Math.round((Math.LN2 / FORMER_PER_DOUBLING / LOG_FACTOR / 2) * 1_000)
const SHOWN = Math.round((Math.log((FACTOR + 1) / 2) / LOG_FACTOR) * 1_000)

/** SQL that turns a former bucket into the bucket of its middle, in whole numbers. Former bucket 0 has latencies below 1 ms. */
export const IN_SKETCH = `CASE WHEN bucket >= ${SKETCH} THEN bucket WHEN bucket = 0 THEN ${SKETCH}
  ELSE ${MILLISECOND} + (${HALF_FORMER} * (2 * bucket - 1) + ${SHOWN} + 500) / 1000 END`
