/** Numbers, money, durations and times as people read them, in the console and on a terminal. Pure. */
const KIB = 1024
const MIB = 1024 ** 2
const inNumbers = once(() => new Intl.NumberFormat('en-US'))
const inShort = once(() => new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 }))
const inDays = once(() => new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' }))
const inYears = once(() => new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' }))

/** Made on first use: a command that formats nothing starts sooner. */
function once<Format>(make: () => Format): () => Format {
  let made: Format | undefined
  return () => (made ??= make())
}

export const number = (value: number): string => inNumbers().format(value)
export const compact = (value: number): string => (value < 10_000 ? inNumbers() : inShort()).format(value)

/** Smaller amounts are shown as "less than" this one. Smaller differences count as zero. */
export const LEAST_MONEY = 0.0001

/**
 * US dollars, with the digits that a small amount needs: $12.30, $0.123, $0.00123, and `<$0.0001` for smaller amounts.
 */
export function money(amount: number): string {
  if (amount > 0 && amount < LEAST_MONEY) return `<$${LEAST_MONEY}`
  return `$${amount.toLocaleString('en-US', digitsOf(amount))}`
}

function digitsOf(amount: number): Intl.NumberFormatOptions {
  if (amount === 0 || amount >= 100) return { maximumFractionDigits: 0 }
  if (amount < 0.1) return { maximumSignificantDigits: 3 }
  return { minimumFractionDigits: 2, maximumFractionDigits: amount < 1 ? 3 : 2 }
}

/** `120 ms`, `1.2 s`, `3 m 04 s`, `2 h 05 m`, `2 h`, `3 d 4 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600), Math.floor(seconds / 86_400)]
  const two = (value: number) => String(value).padStart(2, '0')
  if (hours === 0) return `${minutes} m ${two(seconds % 60)} s`
  if (days === 0) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${two(minutes % 60)} m`
  return hours % 24 === 0 ? `${days} d` : `${days} d ${hours % 24} h`
}

/** `12 %`. `0 %` and `100 %` only if exact. Empty if the whole is zero. */
export function percent(partialCount: number, whole: number): string {
  if (whole === 0) return ''
  const rounded = Math.round((100 * partialCount) / whole)
  if (rounded === 0 && partialCount > 0) return '< 1 %'
  return rounded === 100 && partialCount < whole ? '> 99 %' : `${rounded} %`
}

/** `1 MiB (1,048,576 bytes)`, for limits. */
export function sizeLimit(bytes: number): string {
  // Without Intl, which takes 20 ms to load its data: descriptions of the contract are made in each process.
  const exact = `${String(bytes).replace(/\B(?=(?:\d{3})+$)/g, ',')} bytes`
  if (bytes % MIB === 0) return `${bytes / MIB} MiB (${exact})`
  return bytes % KIB === 0 ? `${bytes / KIB} KiB (${exact})` : exact
}

/** Clocks of machines and of the page may differ by this much. */
const CLOCK_MS = 10_000

/** `now`, `12 s ago`, `5 m ago`, `3 h ago`; a date in the future or beyond two days. */
export function relative(time: number, now: number): string {
  const ago = now - time
  const [value, unit] =
    ago < 60_000 ? [ago / 1_000, 's'] : ago < 3_600_000 ? [ago / 60_000, 'm'] : [ago / 3_600_000, 'h']
  if (ago < 2_000 && ago > -CLOCK_MS) return 'now'
  if (ago > 0 && ago < 48 * 3_600_000) return `${Math.floor(value as number)} ${unit} ago`
  return Math.abs(ago) < 300 * 86_400_000 ? inDays().format(time) : inYears().format(time)
}

/** A question about a flow of values, and the answer from recorded runs. */
export interface AnsweredFlow {
  days: number
  /** The condition on the call that receives the value. */
  condition: string
  flow: { fromTool?: string; fromLabel?: string; toTool?: string; toLabel?: string } | null
}

/** `In 30 days, no value from read_mail reached send_* where …: 0 of 862 calls.` */
export function flowSentence(
  { days, condition, flow }: AnsweredFlow,
  { calls, reached }: { calls: number; reached: number },
): string {
  const source = flow?.fromTool ?? `outputs labelled ${flow?.fromLabel ?? ''}`
  const target = flow?.toTool ?? `tools labelled ${flow?.toLabel ?? ''}`
  const where = condition === 'true' ? '' : ` where ${condition}`
  const period = days === 1 ? '1 day' : `${number(days)} days`
  const sum = `${number(reached)} of ${number(calls)} ${calls === 1 ? 'call' : 'calls'}`
  return `In ${period}, ${reached === 0 ? 'no value' : 'values'} from ${source} reached ${target}${where}: ${sum}.`
}
