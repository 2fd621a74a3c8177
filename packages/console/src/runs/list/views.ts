/** Converts saved views of the list of runs between the list's address and the API. */
import { RUN_FILTERS } from '@tacho/contract/runs/run-filters.ts'
import type { RunFilter } from '@tacho/contract/runs/operator-run.ts'
import type { NewRunView, RunView } from '@tacho/contract/runs/run-view.ts'
import { allItems } from '@tacho/client/items.ts'
import { queryOptions } from '@tanstack/react-query'
import { api } from '../../web/api.ts'
import { columnsIn } from './columns.ts'
import { filterQuery, PERIODS, type Since } from '../../web/address.ts'
import { readRunListAddress, type RunListAddress } from '../address.ts'

const HOUR_MS = 3_600_000

export const viewsQuery = (environmentId: string) =>
  queryOptions({
    queryKey: ['run views', environmentId],
    queryFn: () => allItems(api.listRunViews, { params: { environmentId }, query: { limit: 200 } }),
    select: (views) => views.toSorted((a, b) => a.name.localeCompare(b.name)),
  })

/** The filters under their API names, without `since`. */
export function filterOf({ status, from, to, ...search }: RunListAddress): RunFilter {
  return {
    ...filterQuery(RUN_FILTERS, search),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(status === 'STALLED' ? { activity: status } : status && { status }),
  }
}

/** Whether a view is a queue, which the judging page lists: its runs are not judged yet. */
export const isQueue = ({ query }: RunView): boolean => query.unjudged !== undefined

export const LIST_VIEWS = {
  label: 'Views',
  noun: 'view',
  save: 'Save this view',
  empty: 'A view keeps filters and columns under a name, for everyone here.',
  hint: 'Everyone who can read this environment sees the view.',
  has: (view: RunView) => !isQueue(view),
}

export function toView(search: RunListAddress): Omit<NewRunView, 'name'> {
  const lastHours = search.since === undefined ? null : PERIODS[search.since]
  return { query: filterOf(search), lastHours, columns: columnsIn(search.columns) }
}

export function toSearch(
  { query: { agentId, activity, session, ...query }, lastHours, columns }: RunView,
  now: number,
): RunListAddress {
  const since = (Object.keys(PERIODS) as Since[]).find((one) => PERIODS[one] === lastHours)
  // A period that the list does not offer is converted to a start time.
  const isOther = lastHours !== null && since === undefined && query.from === undefined
  return readRunListAddress({
    ...query,
    ...(activity && { status: activity }),
    ...(agentId !== undefined && { agent: agentId }),
    ...(session !== undefined && { sessionId: session }),
    ...(since !== undefined && { since }),
    ...(isOther && { from: new Date(now - lastHours * HOUR_MS).toISOString() }),
    ...(columns.length > 0 && { columns: columns.join(',') }),
  })
}
