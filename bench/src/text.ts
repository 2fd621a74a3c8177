/** Numbers as people read them. */
import type { Spread } from './stats.ts'

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US')

/** Three digits that count, and no more than two behind the point. */
export function figure(value: number): string {
  const size = Math.abs(value)
  if (size >= 100) return whole(value)
  const digits = size >= 10 ? 1 : 2
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The median, and from where to where the rounds went. */
export function spread({ median, min, max }: Spread, text = figure): string {
  return min === max ? text(median) : `${text(median)} (${text(min)}–${text(max)})`
}

export const ratio = (value: number): string => value.toFixed(2)
export const percent = (share: number): string => `${Math.round(share * 100)} %`
export const megabytes = (bytes: number): string => `${figure(bytes / 1e6)} MB`
