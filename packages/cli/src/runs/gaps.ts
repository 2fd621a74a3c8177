/** `tacho runs gaps`: shows clients or agents that lose events, with counts and reasons. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { whyMissing } from '@tacho/contract/record/completeness-text.ts'
import { number } from '@tacho/contract/engine/format.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { CompletenessQuery, CompletenessSum } from '@tacho/contract/record/completeness.ts'
import { agentIdOf } from '../engine/find-by-id.ts'
import { connected } from '../engine/connected.ts'
import type { Input } from '../engine/operator-client.ts'
import { mostOf, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { faint, printEmpty, printJson, printLine, printMore, printTable, spokenTime } from '../engine/output.ts'
import { printPeriod, wholePeriodOf, type ZoneOptions } from '../engine/period.ts'

export interface GapsOptions extends EnvironmentOptions, PageOptions, ZoneOptions {
  by: CompletenessQuery['by']
  agent?: string
  from: string
  to?: string
}

export async function printGaps(options: GapsOptions): Promise<void> {
  const { by, agent } = options
  const { from, to } = wholePeriodOf(options)
  const { client, environmentId } = await connected(options)
  const agentId = agent === undefined ? {} : { agentId: await agentIdOf(client, environmentId, agent) }
  let lookedTo: string | null = null
  const read = async (completenessInput: Input<'readCompleteness'>) => {
    const page = await client.readCompleteness(completenessInput)
    lookedTo = page.lookedTo
    return page
  }
  const query = { from, to, by, ...agentId, limit: LIMITS.operatorPageMax }
  const { items, hasMore } = await taken(eachItem(read, { params: { environmentId }, query }), mostOf(options))
  if (options.json) return printJson({ from, to, items, hasMore, lookedTo })
  if (items.length === 0) {
    return printEmpty(
      `No event of a run that started from ${from} to ${to} is known to be missing. \`tacho runs show\` says what of a run arrived.`,
    )
  }
  printPeriod({ from, to }, options)
  printTable(
    [
      { title: by === 'agent' ? 'AGENT' : 'CLIENT' },
      { title: 'MISSING', align: 'right' },
      { title: 'OF', align: 'right' },
      { title: 'RUNS', align: 'right' },
      { title: 'NEWEST RUN' },
      { title: 'WHY', as: 'text' },
    ],
    items.map(cells),
  )
  printMore(hasMore)
  if (lookedTo !== null) printLine(faint(`Only runs with gaps that started since ${spokenTime(lookedTo)} are counted.`))
}

function cells(sum: CompletenessSum): string[] {
  const { name, recorded, arrived, runs, newestRun } = sum
  return [name, ...[recorded - arrived, recorded, runs].map(number), newestRun.runId, whyMissing(sum, spokenTime)]
}
