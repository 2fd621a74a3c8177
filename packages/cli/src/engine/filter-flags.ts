/** Flags that filter a list. The contract defines each flag in the row of its filter. */
import { AMOUNT_PATTERN, type FilterRow, type FilterValues } from '@tacho/contract/web/filter.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { wholeNumber } from './options.ts'
import { zoneOption, type ZoneOptions } from './period.ts'
import { durationMs, moment } from './time-text.ts'

type Filters = Readonly<Record<string, FilterRow>>

const flagsOf = (filters: Filters) =>
  Object.entries(filters).flatMap(([name, row]) => {
    if (row.flag === undefined) return []
    const [flags, help, word] = row.flag
    return [{ name, row, word, option: new Option(flags, help) }]
  })

/** `first`: filters whose flags come first in the help. */
export function withFilters(command: Command, filters: Filters, first: readonly string[] = []): Command {
  const flags = flagsOf(filters)
  const order = [...new Set([...first, ...flags.map(({ name }) => name)])]
  for (const { row, option } of flags.toSorted((one, other) => order.indexOf(one.name) - order.indexOf(other.name))) {
    const parse = option.required ? parserOf(row) : null
    command.addOption(parse ? option.argParser(parse) : option)
  }
  return flags.some(({ row }) => row.kind === 'time') ? command.addOption(zoneOption()) : command
}

/** The query of these flags. */
export function filterQuery<Rows extends Filters>(filters: Rows, options: object, now: number): FilterValues<Rows> {
  const values = new Map<string, unknown>(Object.entries(options))
  const { zone }: ZoneOptions = options
  const query = flagsOf(filters).flatMap(({ name, row, word, option }) => {
    const value = values.get(option.attributeName())
    if (value === undefined) return []
    if (row.kind === 'time') return [[name, moment(String(option.long), value as string, -1, now, zone)]]
    return [[name, value === true && row.kind === 'words' ? (word ?? row.words[0]) : value]]
  })
  return Object.fromEntries(query) as FilterValues<Rows>
}

function parserOf(row: FilterRow): ((text: string) => string | number) | null {
  switch (row.kind) {
    case 'amount':
      return parseAmount
    case 'duration':
      return parseDuration
    case 'count':
      return wholeNumber(row.max)
    case 'words':
      return oneOf(row.words)
    default:
      return null
  }
}

/** Argument parser for commander: accepts one of these words, in any case. */
export const oneOf =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): Word => {
    const chosen = words.find((known) => known.toUpperCase() === text.toUpperCase())
    if (chosen !== undefined) return chosen
    throw new InvalidArgumentError(`It must be one of ${words.join(', ')}.`)
  }

function parseAmount(text: string): string {
  if (new RegExp(`^${AMOUNT_PATTERN}$`).test(text)) return text
  throw new InvalidArgumentError('It must be a number such as 0.25.')
}

function parseDuration(text: string): number {
  const ms = durationMs(text)
  if (ms !== null && ms > 0) return ms
  throw new InvalidArgumentError('It must be a duration such as 30s, 5m or 2h.')
}
