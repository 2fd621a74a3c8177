import { DAY_MS } from '../../storage/hours.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { normalised } from '../../domain/issue.ts'
import {
  toActivity,
  toAffectedAgent,
  toAffectedRun,
  toIssue,
  toIssueRecord,
  toIssueSummary,
} from '../../domain/issue-view.ts'
import { isoTime } from '../../storage/iso-time.ts'
import { isStorableText } from '../../domain/text.ts'
import type { IssueFilter, PageBySeen, IssueRow } from '../../storage/issues.ts'
import type { Page } from '../../storage/page.ts'
import { optionalTimeOf } from '../field.ts'
import { refuse } from '../reply-error.ts'
import { listPage, readPage, NOTHING } from '../paging.ts'
import type { OperatorDeps } from './serve.ts'

export const NO_ISSUE = refuse('not_found', 'The issue does not exist')

type Place = NonNullable<PageBySeen['after']>

interface Part<Row, Item> {
  name: string
  read: (environmentId: string, issueId: string, page: PageBySeen) => Promise<Page<Row>>
  toItem: (row: Row) => Item
  placeOf: (row: Row) => Place
}

interface PartRequest {
  params: { issueId: string }
  query: { limit?: number; cursor?: string }
  environment: { id: string }
}

export function issuesRoutes(deps: OperatorDeps): void {
  const { serve, storage, cursors } = deps

  serve('listIssues', async ({ query, environment: { id: environmentId } }) => {
    const { limit: _, cursor: __, assigned, seenFrom, seenTo, ...rest } = query
    if (!Object.values(rest).every(isStorableText)) return NOTHING
    const filter: IssueFilter = {
      ...rest,
      ...(rest.detectionType === undefined ? {} : { detectionType: normalised(rest.detectionType) }),
      ...(assigned === undefined ? {} : { assigned: assigned === 'true' }),
      seenFrom: optionalTimeOf('seenFrom', seenFrom),
      seenTo: optionalTimeOf('seenTo', seenTo),
    }
    return listPage(cursors, query, {
      of: [environmentId, 'issues', filter],
      read: (page) => storage.listIssues(environmentId, filter, page),
      toItem: toIssueSummary,
      placeOf: ({ lastSeen, id }: IssueRow) => ({ lastSeen, id }),
    })
  })

  serve('listIssueTrends', async ({ query, environment: { id: environmentId } }) => {
    const ids = [...new Set(query.ids.toLowerCase().split(','))]
    const slots = {
      // The present moment falls into the last slot.
      from: deps.now() + 1 - LIMITS.issueTrendDays * DAY_MS,
      width: DAY_MS,
      count: LIMITS.issueTrendDays,
      most: LIMITS.issueTrendRecords,
    }
    const trends = await Promise.all(ids.map((id) => storage.readIssueTrend(environmentId, id, slots)))
    const items = ids.flatMap((id, index) => {
      const trend = trends[index]
      return trend ? [{ id, days: trend.counts, isPartial: trend.isPartial }] : []
    })
    return { from: isoTime(slots.from), items }
  })

  serve('readIssue', async ({ params, environment }) => {
    const issue = await storage.findIssue(environment.id, params.issueId.toLowerCase())
    return issue ? toIssue(issue) : NO_ISSUE
  })

  serve('listOccurrences', (given) =>
    listPart(given, {
      name: 'occurrences',
      read: (environmentId, id, page) => storage.listIssueOccurrences(environmentId, id, 'DETECTION', page),
      toItem: toIssueRecord,
      placeOf: ({ seenAt, id }) => ({ at: seenAt, key: id }),
    }),
  )

  serve('listRecoveries', (given) =>
    listPart(given, {
      name: 'recoveries',
      read: (environmentId, id, page) => storage.listIssueOccurrences(environmentId, id, 'RECOVERY', page),
      toItem: toIssueRecord,
      placeOf: ({ seenAt, id }) => ({ at: seenAt, key: id }),
    }),
  )

  serve('listAffectedRuns', (given) =>
    listPart(given, {
      name: 'affected runs',
      read: (environmentId, id, page) => storage.listAffectedRuns(environmentId, id, page),
      toItem: toAffectedRun,
      placeOf: ({ lastSeen, key }) => ({ at: lastSeen, key }),
    }),
  )

  serve('listAffectedAgents', (given) =>
    listPart(given, {
      name: 'affected agents',
      read: (environmentId, id, page) => storage.listAffectedAgents(environmentId, id, page),
      toItem: toAffectedAgent,
      placeOf: ({ lastSeen, key }) => ({ at: lastSeen, key }),
    }),
  )

  serve('listIssueActivity', (given) =>
    listPart(given, {
      name: 'issue activity',
      read: (environmentId, id, page) => storage.listIssueActivity(environmentId, id, page),
      toItem: toActivity,
      placeOf: ({ at, id }) => ({ at, key: id }),
    }),
  )

  async function listPart<Row, Item>(
    { params, query, environment: { id: environmentId } }: PartRequest,
    { name, read, toItem, placeOf }: Part<Row, Item>,
  ): Promise<{ items: Item[]; nextCursor: string | null }> {
    const issueId = params.issueId.toLowerCase()
    const { rows, nextCursor } = await readPage(cursors, query, {
      of: [environmentId, name, issueId],
      read: (page) => read(environmentId, issueId, page),
      placeOf,
    })
    if (rows.length === 0 && !(await storage.findIssue(environmentId, issueId))) throw NO_ISSUE
    return { items: rows.map(toItem), nextCursor }
  }
}
