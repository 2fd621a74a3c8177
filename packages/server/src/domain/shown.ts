/** Rows become what the APIs show, by name, so that no other column is shown. */
import { isoTime } from './run.ts'

export function pick<Row extends object, Name extends keyof Row>(row: Row, ...names: Name[]): Pick<Row, Name> {
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Pick<Row, Name>
}

type Iso<Time> = Time extends number ? string : null

export function isoOf<Name extends string, Row extends Record<Name, number | null>>(
  row: Row,
  ...names: Name[]
): { [Each in Name]: Iso<Row[Each]> } {
  const texts = names.map((name) => {
    const time: number | null = row[name]
    return [name, time === null ? null : isoTime(time)]
  })
  return Object.fromEntries(texts) as { [Each in Name]: Iso<Row[Each]> }
}
