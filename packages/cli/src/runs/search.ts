import { eachItem, taken } from '@tacho/client/items.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { SEARCH_FILTERS } from '@tacho/contract/runs/search-filters.ts'
import type { SearchHit, SearchSettings } from '@tacho/contract/runs/search.ts'
import { EVENT_TYPE_WORDS } from '@tacho/contract/engine/words.ts'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, mostOf, withPages, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { cutEnd } from '../engine/text-width.ts'
import { currentLook } from '../engine/display.ts'
import {
  printable,
  printEmpty,
  printJson,
  printLine,
  printMore,
  spokenNumber,
  spokenTime,
  strong,
} from '../engine/output.ts'
import { filterQuery, withFilters } from '../engine/filter-flags.ts'
import { printPeriod, type ZoneOptions } from '../engine/period.ts'

interface Options extends EnvironmentOptions, PageOptions, ZoneOptions {
  enable?: true
  disable?: true
  status?: true
}

const LIMIT = 25
const MOST = 10_000

export function addSearch(command: Command): void {
  withFilters(withPages(inEnvironment(command), LIMIT), SEARCH_FILTERS)
    .addOption(new Option('--enable', 'switch search on in this environment').conflicts(['disable', 'status']))
    .addOption(new Option('--disable', 'switch search off and delete its index').conflicts('status'))
    .option('--status', 'show whether search is on, and how far the index is')
    .addHelpText(
      'after',
      `
Words must all occur in an event. "words in quotes" stand side by side, a minus excludes, and a field limits where a
word stands: tool:, type:, agent:, model:, label:. Put -- before a query that begins with a minus.

Examples:
  tacho search --enable --environment acme/production
  tacho search 'refund "order 4711" tool:issue_refund' --from 7d
  tacho search 'type:ERROR -timeout' --json`,
    )
    .action(search)
}

async function search(words: string[], options: Options): Promise<void> {
  const { enable, disable, status } = options
  const isSwitch = enable === true || disable === true
  const q = words.join(' ')
  if ((q === '') === !(isSwitch || status)) throw wrongUsage('Give either a query, or --enable, --disable or --status.')
  const times = filterQuery(SEARCH_FILTERS, options, Date.now())
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  if (q === '') {
    const settings = isSwitch
      ? await client.switchSearch({ params, body: { enabled: enable === true } })
      : await client.readSearchSettings({ params })
    return options.json ? printJson(settings) : printLine(settingsLine(settings))
  }
  const most = Math.min(mostOf(options), MOST)
  const query = { ...times, q, limit: Math.min(most, LIMITS.searchPageMax) }
  // Read the settings before the search: it may miss events that are indexed in between.
  const settings = options.json ? null : await client.readSearchSettings({ params })
  const { items, hasMore } = await taken(eachItem(client.searchEvents, { params, query }), most)
  if (settings === null) return printJson({ items, hasMore })
  printPeriod(times, options)
  if (items.length === 0) {
    if (isWhole(settings)) printEmpty('No matching events. `tacho search --help` shows how to write a query.')
    else
      printEmpty(
        `No matching events yet. ${settingsLine(settings)} \`tacho search --status\` shows how far the index is.`,
      )
  }
  for (const hit of items) printHit(hit)
  printMore(hasMore)
}

function printHit({ run, event, snippet }: SearchHit): void {
  const { timestamp, eventType, label, eventId } = event
  const { width } = currentLook()
  const isWhole = width === null
  const words = isWhole ? [eventId, eventType, label] : [EVENT_TYPE_WORDS.get(eventType) ?? eventType, label]
  const head = [spokenTime(timestamp), ...[run.runId, ...words].map(printable)].join('  ')
  printLine(isWhole ? head : cutEnd(head, width))
  if (!isWhole && snippet.map(({ text }) => text).join('') === label) return
  const parts = snippet.map(({ text, isHit }) => (isHit ? strong(printable(text)) : printable(text)))
  printLine(`    ${parts.join('')}`)
}

/** Whether a search covers all events. It does not find events that are not indexed yet. */
const isWhole = ({ state, waitingRuns }: SearchSettings): boolean => state === 'ON' && waitingRuns === 0

function settingsLine({ state, indexedEvents, waitingRuns, waitingSince, error }: SearchSettings): string {
  if (state === 'OFF') return 'Search is off.'
  if (state === 'REMOVING') return 'Search is off. Its index is being deleted.'
  if (state === 'FAILED') return `Search is on, but indexing stopped: ${error}`
  const behind = waitingSince === null ? 'none waits' : `${spokenNumber(waitingRuns)} runs wait, since ${waitingSince}`
  const older = state === 'INDEXING' ? ' Older runs are being indexed.' : ''
  return `Search is on: ${spokenNumber(indexedEvents)} events are indexed; ${behind}.${older}`
}
