/** Flags that choose runs, for every command with the filters of the list of runs. */
import { RUN_FILTERS, type RunFilterName, type RunFilterValues } from '@tacho/contract/runs/run-filters.ts'
import { Command, CommanderError } from 'commander'
import { filterQuery, withFilters } from '../engine/filter-flags.ts'
import type { EnvironmentOptions } from '../engine/options.ts'
import type { ZoneOptions } from '../engine/period.ts'
import { wrongUsage } from '../engine/stop.ts'

export interface RunFilterOptions extends EnvironmentOptions, ZoneOptions {
  agent?: string
}

/** Filters that the help lists first, in this order. */
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

export function withRunFilters(command: Command): Command {
  return withFilters(command, RUN_FILTERS, FIRST)
}

/** The query for these flags, without the agent, which a list needs under another name. */
export function runQuery(options: RunFilterOptions, now: number): Omit<RunFilterValues, 'agent'> {
  const { agent: _, ...query } = filterQuery(RUN_FILTERS, options, now)
  return query
}

/** Words that people write instead of filter names. */
const OTHER_WORDS = new Map([
  ['since', 'from'],
  ['until', 'to'],
])

/**
 * Parses filters in one text, such as `status=FAILED tool=refund since=7d`. Names are flags of the list of runs, or
 * members of its query. A value with spaces needs quotes.
 */
export function runFiltersIn(text: string, now: number): { query: Omit<RunFilterValues, 'agent'>; agent?: string } {
  const flags = withRunFilters(new Command('runs').exitOverride().configureOutput({ writeErr: () => undefined }))
  const words = text.match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? []
  const args = words.flatMap((word) => {
    const plainWord = word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2')
    const [, givenName = '', value] = /^([^=]+)(?:=(.*))?$/s.exec(plainWord) ?? []
    if (givenName === 'limit')
      throw wrongUsage(
        `The filter ${JSON.stringify(text)} has a limit, which is a flag of its own: --limit ${value ?? 100}.`,
      )
    const name = OTHER_WORDS.get(givenName) ?? givenName
    const row = Object.hasOwn(RUN_FILTERS, name) ? RUN_FILTERS[name as RunFilterName] : undefined
    const [flag = `--${name}`] = row && 'flag' in row ? row.flag[0].split(' ') : []
    return value === undefined || value === 'true' ? [flag] : [`${flag}=${value}`]
  })
  try {
    flags.parse(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    throw wrongUsage(`The filter ${JSON.stringify(text)} cannot be read: ${error.message.replace(/^error: /, '')}`)
  }
  if (flags.args.length > 0)
    throw wrongUsage(`The filter ${JSON.stringify(text)} must have words such as status=FAILED.`)
  const options: RunFilterOptions = flags.opts()
  return { query: runQuery(options, now), ...(options.agent !== undefined && { agent: options.agent }) }
}
