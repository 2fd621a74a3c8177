/** The period that a command covers: `--from`, `--to`, and the zone of dates and of times without a zone. */
import { Option } from 'commander'
import { currentLook } from './display.ts'
import { faint, printLine } from './output.ts'
import { localTime, moment, parseZone } from './time-text.ts'

export interface ZoneOptions {
  zone?: string
}

export interface PeriodOptions extends ZoneOptions {
  from?: string
  to?: string
}

/** The --zone option of commands that take dates. */
export function zoneOption(): Option {
  const about = 'time zone of dates, and of times without one, such as Europe/Berlin'
  return new Option('--zone <name>', about).argParser(parseZone).default('UTC')
}

/** Parses the ends of a period. An end that is not given stays undefined. */
export function periodOf({ from, to, zone }: PeriodOptions, now = Date.now()): { from?: string; to?: string } {
  return {
    ...(from === undefined ? {} : { from: moment('--from', from, -1, now, zone) }),
    ...(to === undefined ? {} : { to: moment('--to', to, -1, now, zone) }),
  }
}

/** The same for commands whose period ends now by default. */
export function wholePeriodOf({ from, to, zone }: PeriodOptions & { from: string }): { from: string; to: string } {
  const now = Date.now()
  // End just after now, so that events of this millisecond count.
  const { to: end = new Date(now + 1).toISOString() } = periodOf(
    { ...(to !== undefined && { to }), zone: zone ?? 'UTC' },
    now,
  )
  return { from: moment('--from', from, -1, now, zone), to: end }
}

/** `From 2026-11-24 00:00 to 2026-11-25 00:00 Europe/Berlin`; empty if no time was given. */
export function periodText({ from, to }: { from?: string; to?: string }, { zone = 'UTC' }: ZoneOptions): string {
  if (from === undefined && to === undefined) return ''
  const shown = (time: string) => localTime(time, zone).slice(0, 16).replace('T', ' ')
  const parts = [
    ...(from === undefined ? [] : [`from ${shown(from)}`]),
    ...(to === undefined ? [] : [`to ${shown(to)}`]),
  ]
  const text = parts.join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} ${zone}`
}

/** Prints the period above an answer, on stderr: a program that counts the lines of stdout must not see it. */
export function printPeriod(period: { from?: string; to?: string }, options: ZoneOptions, hint = ''): void {
  const text = periodText(period, options)
  if (text === '') return
  if (currentLook().width === null) process.stderr.write(`${text}.${hint}\n`)
  else printLine(faint(`${text}.${hint}`))
}
