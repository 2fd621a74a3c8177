/** Flags that choose runs, for every command that takes the filters of the list of runs. Each flag is in the row of its filter. */
import {
  RUN_FILTERS,
  RUN_FILTER_NAMES,
  type RunFilterName,
  type RunFilterValues,
} from '@tacho/contract/runs/run-filters.ts'
import { AMOUNT_PATTERN, type FilterRow } from '@tacho/contract/web/filter.ts'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { durationMs, moment } from '../engine/time-text.ts'

export interface RunFilterOptions extends EnvironmentOptions {
  agent?: string
}

/** In this order in the help, before the others. */
const FIRST: readonly RunFilterName[] = [
  'q',
  'agent',
  'session',
  'user',
  'tag',
  'metadata',
  'status',
  'activity',
  'from',
  'to',
  'minCost',
  'minLengthMs',
  'hasErrors',
  'loops',
  'hasApprovals',
  'completeness',
]
const NAMES = [...new Set([...FIRST, ...RUN_FILTER_NAMES])]

function flagOf(name: RunFilterName): { row: FilterRow; option: Option } | null {
  const row: FilterRow = RUN_FILTERS[name]
  return row.flag === undefined ? null : { row, option: new Option(...row.flag) }
}

export function withRunFilters(command: Command): Command {
  for (const name of NAMES) {
    const flag = flagOf(name)
    const parse = flag && parserOf(flag.row)
    if (flag) command.addOption(parse ? flag.option.argParser(parse) : flag.option)
  }
  return command
}

/** The query of these flags, without the agent: a list needs it under another name. */
export function runQuery(options: RunFilterOptions, now: number): Omit<RunFilterValues, 'agent'> {
  const given = new Map<string, unknown>(Object.entries(options))
  const query = NAMES.flatMap((name) => {
    const flag = flagOf(name)
    const value = flag && given.get(flag.option.attributeName())
    if (!flag || name === 'agent' || value === undefined) return []
    const { row, option } = flag
    if (row.kind === 'time') return [[name, moment(String(option.long), value as string, -1, now)]]
    return [[name, value === true && row.kind === 'words' ? row.words[0] : value]]
  })
  return Object.fromEntries(query) as Omit<RunFilterValues, 'agent'>
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
      return row.words.length > 1 ? parseWord(row.words) : null
    default:
      return null
  }
}

const parseWord = (words: readonly string[]) => (text: string) => {
  const word = words.find((known) => known === text.toUpperCase())
  if (word !== undefined) return word
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
