/** Formats numbers for people. */
import type { Spread } from './stats.ts'

export const whole = (value: number): string => Math.round(value).toLocaleString('en-US')

/** Three significant digits, at most two decimals. */
export function figure(value: number): string {
  const size = Math.abs(value)
  if (size >= 100) return whole(value)
  const digits = size >= 10 ? 1 : 2
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The median, with the smallest and the largest round. */
export function spread({ median, min, max }: Spread, text = figure): string {
  return min === max ? text(median) : `${text(median)} (${text(min)}–${text(max)})`
}

export const ratio = (value: number): string => value.toFixed(2)
export const percent = (share: number): string => `${Math.round(share * 100)} %`
export const megabytes = (bytes: number): string => `${figure(bytes / 1e6)} MB`
