export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

export const hourOf = (time: number): number => Math.floor(time / HOUR_MS) * HOUR_MS

export function isoTime(milliseconds: number): string
export function isoTime(milliseconds: number | null): string | null
export function isoTime(milliseconds: number | null): string | null {
  return milliseconds === null ? null : new Date(milliseconds).toISOString()
}
