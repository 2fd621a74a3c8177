export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

export const hourOf = (time: number): number => Math.floor(time / HOUR_MS) * HOUR_MS

export function isoTime(milliseconds: number): string
export function isoTime(milliseconds: number | null): string | null
export function isoTime(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString()
}
