/** Converts rows to API objects, and bodies to rows. It copies members by name, so that no other gets through. */
import { isoTime } from '../../storage/engine/times.ts'

export function pick<Row extends object, Name extends keyof Row>(row: Row, ...names: Name[]): Pick<Row, Name> {
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Pick<Row, Name>
}

/** Absent and null mean the same in a body. */
export function orNull<Body extends object, Name extends keyof Body>(body: Body, ...names: Name[]) {
  type Given = { [Each in Name]-?: Exclude<Body[Each], undefined> | null }
  return Object.fromEntries(names.map((name) => [name, body[name] ?? null])) as Given
}

/** A time for file names. */
export const fileTime = (time: number): string => `${isoTime(time).slice(0, 19).replaceAll(':', '-')}Z`

type Iso<Time> = Time extends number ? string : null

export function isoOf<Name extends string, Row extends Record<Name, number | null>>(
  row: Row,
  ...names: Name[]
): { [Each in Name]: Iso<Row[Each]> } {
  return Object.fromEntries(names.map((name) => [name, isoTime(row[name])])) as { [Each in Name]: Iso<Row[Each]> }
}
