/** Formats of the console only: sizes and exact times. Other formats are shared with the terminal. */
import { duration, number } from '@tacho/contract/engine/format.ts'

export { compact, duration, LEAST_MONEY, money, number, percent, relative } from '@tacho/contract/engine/format.ts'

/** `Nov 3, 2026, 14:00:05 UTC` */
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long', hourCycle: 'h23' })
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
/** `14:00`, even if the reader's language uses a 12-hour clock. */
const HOUR_OF_DAY = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })

export function bytes(count: number): string {
  if (count < 1_000) return `${count} B`
  if (count < 1_000_000) return `${(count / 1_000).toFixed(1)} kB`
  return `${(count / 1_000_000).toFixed(1)} MB`
}

/** Median and 95th percentile. `≈`: an earlier version of the server counted some calls in wider buckets. */
export function percentiles(latency: { p50Ms: number; p95Ms: number; isApproximate: boolean } | null): string {
  if (latency === null) return ''
  return `${latency.isApproximate ? '≈ ' : ''}${duration(latency.p50Ms)} / ${duration(latency.p95Ms)}`
}

/** The 95th percentile of a latency, marked if it is approximate. */
export function p95Text(latency: { p95Ms: number; isApproximate: boolean }): string {
  return `${latency.isApproximate ? '≈ ' : ''}${duration(latency.p95Ms)}`
}

/** `Nov 3, 14:00` */
const MINUTE_OF_DAY = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
})
const MONTH_OF_YEAR = new Intl.DateTimeFormat(undefined, { month: 'short' })
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' })

export const exact = (time: number): string => EXACT.format(time)
export const clock = (time: number): string => CLOCK.format(time)
export const hourOfDay = (time: number): string => HOUR_OF_DAY.format(time)
export const minuteOfDay = (time: number): string => MINUTE_OF_DAY.format(time)
export const monthOfYear = (time: Date): string => MONTH_OF_YEAR.format(time)
export const dayOfYear = (time: number): string => DAY_OF_YEAR.format(time)
export const counted = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? '' : 's'}`

/** A line of Markdown as plain text, for lists: without the marks of links, emphasis and code. */
export function plainText(line: string): string {
  return line
    .replace(/^(#{1,6}|[-*+>]|\d{1,3}[.)])\s+/, '')
    .replaceAll(/!?\[([^\][]{1,500})\]\([^()\s]{1,2000}\)/g, '$1')
    .replaceAll(/`([^`]{1,500})`/g, '$1')
    .replaceAll(/(\*\*|__)(?=\S)([^*_]{1,500})(?<=\S)\1/g, '$2')
    .replaceAll(/(?<![\w*])\*(?=\S)([^*]{1,500})(?<=\S)\*(?![\w*])/g, '$1')
}

/** The name of a run in a list: its question or, without one, its id. */
export const runName = ({ title, runId }: { title: string | null; runId: string }): string =>
  title === null ? runId : plainText(title)

/** Names of browser and system; an unknown one is shown as sent. */
export function programOf(userAgent: string | null): string {
  if (userAgent === null) return 'Unknown program'
  const browser = /\b(Edg|Firefox|Chrome|Safari)[/\w]*\//.exec(userAgent)?.[1]
  const system = /Windows|Android|iPhone|iPad|Mac OS X|Linux/.exec(userAgent)?.[0]
  if (browser === undefined) return userAgent
  return `${browser === 'Edg' ? 'Edge' : browser}${system === undefined ? '' : `, ${system}`}`
}
