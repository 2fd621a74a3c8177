/** Flags that choose runs, for every command that takes the filters of the list of runs. */
import { RUN_FILTERS, type RunFilterName, type RunFilterValues } from '@tacho/contract/runs/run-filters.ts'
import type { Command } from 'commander'
import { filterQuery, withFilters } from '../engine/filter-flags.ts'
import type { EnvironmentOptions } from '../engine/options.ts'
import type { ZoneOptions } from '../engine/period.ts'

export interface RunFilterOptions extends EnvironmentOptions, ZoneOptions {
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

export function withRunFilters(command: Command): Command {
  return withFilters(command, RUN_FILTERS, FIRST)
}

/** The query of these flags, without the agent: a list needs it under another name. */
export function runQuery(options: RunFilterOptions, now: number): Omit<RunFilterValues, 'agent'> {
  const { agent: _, ...query } = filterQuery(RUN_FILTERS, options, now)
  return query
}
