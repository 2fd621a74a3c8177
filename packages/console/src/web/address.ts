/**
 * The period of a page. Each page with a period reads it from its address in this form: a length before now, or from
 * and to. Without either, the page has its own default.
 */
import { AMOUNT_MAX, type FilterAddress, type FilterRow, type FilterValues } from '@tacho/contract/web/filter.ts'
import { daysOf, fullHoursOf, offsetAt, ownZone, startOfDay, timeAt } from '@tacho/contract/engine/days.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Lengths in hours. */
export const PERIODS = { '1h': 1, '24h': 24, '7d': 168, '30d': 720, '90d': 2_160, '365d': 8_760 } as const
export type Since = keyof typeof PERIODS

/** Either `since`, or at least one of `from` and `to`, as ISO 8601. */
export interface Range {
  since?: Since
  from?: string
  to?: string
}

const RANGE_NAMES = ['since', 'from', 'to'] as const
/** Changes that remove the range from a search, for `changed`. */
export const NO_RANGE = { since: '', from: '', to: '' } as const

/**
 * Reads a range from an address, which may contain anything: leaves out invalid times, and prefers exact times to a
 * length.
 */
export function readRange(search: object): Range {
  const { since, from, to } = textOf({ ...search }, RANGE_NAMES)
  const [start, end] = [isTime(from) ? from : undefined, isTime(to) ? to : undefined]
  if (start !== undefined && end !== undefined && Date.parse(start) >= Date.parse(end)) return {}
  if (start !== undefined || end !== undefined) {
    return { ...(start !== undefined && { from: start }), ...(end !== undefined && { to: end }) }
  }
  return since !== undefined && Object.hasOwn(PERIODS, since) ? { since: since as Since } : {}
}

function isTime(text: string | undefined): text is string {
  return text !== undefined && !Number.isNaN(Date.parse(text))
}

/** The range in the address; without one, the page's default. */
export function orDefault(range: Range, byDefault: Since): Range {
  return isEmpty(range) ? { since: byDefault } : range
}

export function isEmpty({ since, from, to }: Range): boolean {
  return since === undefined && from === undefined && to === undefined
}

/** The times of a range, in the form of the API; empty for an empty range. */
export function timesOfRange({ since, from, to }: Range, now: number): { from?: string; to?: string } {
  if (since !== undefined) return { from: new Date(now - PERIODS[since] * HOUR_MS).toISOString() }
  return { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
}

/** In milliseconds; `to` is exclusive. */
export interface HourWindow {
  from: number
  to: number
  /**
   * An hour for up to a week, else a day. Days are those of the zone; when its clock changes, a day has 23 or 25 hours.
   */
  stepMs: number
  /** Start of each step. */
  starts: readonly number[]
  zone: string
  /** Whether the range begins earlier than a year ago: usage is read for at most a year. */
  isCut: boolean
}

const WEEK_MS = 7 * DAY_MS
const LONGEST_MS = PERIODS['365d'] * HOUR_MS
const hourOf = (time: number): number => Math.floor(time / HOUR_MS) * HOUR_MS

/** The window of a range. A length ends with the current hour or day; exact times are not changed. */
export function hoursOf({ since, from, to }: Range, byDefault: Since, now: number, zone = ownZone()): HourWindow {
  const isExact = from !== undefined || to !== undefined
  const end = to === undefined ? hourOf(now) + HOUR_MS : Date.parse(to)
  const longest = end - LONGEST_MS
  const periodMs = PERIODS[since ?? byDefault] * HOUR_MS
  const wanted = isExact
    ? from === undefined
      ? longest
      : Math.min(Date.parse(from), end)
    : periodMs > WEEK_MS
      ? daysBefore(now, periodMs / DAY_MS - 1, zone)
      : end - periodMs
  const window = { from: Math.max(wanted, longest), to: end }
  const stepMs = window.to - window.from > WEEK_MS ? DAY_MS : HOUR_MS
  const starts = stepMs === DAY_MS ? daysOf(window, zone) : fullHoursOf(window)
  return { ...window, stepMs, starts, zone, isCut: wanted < longest || (isExact && from === undefined) }
}

/** Start of a period that ends today and whose first day is complete. */
function daysBefore(now: number, days: number, zone: string): number {
  const today = startOfDay(now, zone)
  return timeAt(today + offsetAt(today, zone) - days * DAY_MS, zone)
}

/** The API parameters that sum by the steps of a window. */
export function stepsOf({ stepMs, zone }: HourWindow): { step: 'hour' } | { step: 'day'; zone: string } {
  return stepMs === DAY_MS ? { step: 'day', zone } : { step: 'hour' }
}

/** The step that contains a time, with its end. */
export function stepAt({ starts, to }: Pick<HourWindow, 'starts' | 'to'>, time: number): { step: number; end: number } {
  const step = Math.max(
    0,
    starts.findLastIndex((start) => start <= time),
  )
  return { step, end: starts[step + 1] ?? to }
}

/** The times of a window, in the form of the API. */
export function hourTimes({ from, to }: Pick<HourWindow, 'from' | 'to'>): { from: string; to: string } {
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() }
}

/** The window as an exact range for a list of runs; to is exclusive. A range that ends now has no end. */
export function runsRange({ from, to }: HourWindow, { to: end }: Range): Range {
  const start = new Date(from).toISOString()
  return end === undefined ? { from: start } : { from: start, to: new Date(to).toISOString() }
}

/** The time zone of a chart, in words. */
export const zoneText = ({ stepMs, zone }: Pick<HourWindow, 'stepMs' | 'zone'>): string =>
  stepMs === DAY_MS ? `Days begin at midnight in ${zone}.` : `Hours in ${zone}.`

/** The previous window of the same length. */
export function hoursBefore(window: HourWindow): HourWindow {
  return { ...window, from: window.from - (window.to - window.from), to: window.from }
}

/** Reads texts from an address, which may contain anything. Leaves out values that are not texts. */
export function textOf<Name extends string>(
  search: Readonly<Record<string, unknown>>,
  names: readonly Name[],
): { [N in Name]?: string } {
  const readTexts: { [N in Name]?: string } = {}
  for (const name of names) {
    const value = Object.hasOwn(search, name) ? search[name] : undefined
    // The router converts digits to a number.
    if (typeof value === 'number' || typeof value === 'boolean') readTexts[name] = String(value)
    else if (typeof value === 'string' && value !== '') readTexts[name] = value
  }
  return readTexts
}

type Filters = Readonly<Record<string, FilterRow>>

/** Reads the filters of an address, without its range. Leaves out invalid values. */
export function readFilters<Rows extends Filters>(
  filters: Rows,
  search: Readonly<Record<string, unknown>>,
): FilterAddress<Rows> {
  const values = Object.entries(filters).flatMap(([name, row]) => {
    const { address = name } = row
    const text = address === null ? undefined : textOf(search, [address])[address]
    const value = address === null || text === undefined ? undefined : filterValue(row, text)
    return value === undefined ? [] : [[address, value]]
  })
  return Object.fromEntries(values) as FilterAddress<Rows>
}

function filterValue(row: FilterRow, text: string): string | number | true | undefined {
  const upTo = (most: number) => (Number(text) > 0 && Number(text) <= most ? Number(text) : undefined)
  switch (row.kind) {
    case 'time':
      return undefined
    case 'words':
      if (!row.words.includes(text)) return undefined
      return row.words.length === 1 && text === 'true' ? true : text
    case 'amount':
      return upTo(AMOUNT_MAX)
    case 'duration':
    case 'count': {
      const value = upTo(row.kind === 'count' ? row.max : Number.MAX_SAFE_INTEGER)
      return value && Math.ceil(value)
    }
    default:
      return text
  }
}

/** The filters of an address, in the form of the API. */
export function filterQuery<Rows extends Filters>(filters: Rows, search: object): FilterValues<Rows> {
  const values = new Map<string, unknown>(Object.entries(search))
  const query = Object.entries(filters).flatMap(([name, row]) => {
    const value = row.address === null || row.kind === 'time' ? undefined : values.get(row.address ?? name)
    if (value === undefined) return []
    // Write all digits, because the API rejects exponents.
    if (row.kind === 'amount') return [[name, Number(value).toFixed(9)]]
    return [[name, value === true ? 'true' : value]]
  })
  return Object.fromEntries(query) as FilterValues<Rows>
}
