import { DAY_MS } from '../../storage/engine/hours.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { normalised } from '../../domain/issues/issue.ts'
import {
  toActivity,
  toAffectedAgent,
  toAffectedRun,
  toIssue,
  toIssueRecord,
  toIssueSummary,
} from '../../domain/issues/issue-view.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { isStorableText } from '../../domain/web/text.ts'
import type { IssueFilter, PageBySeen, IssueRow } from '../../storage/issues/issues.ts'
import type { Page } from '../../storage/engine/page.ts'
import { optionalTimeOf } from '../web/field.ts'
import { found, refuse } from '../web/reply-error.ts'
import { listPage, NOTHING } from '../web/paging.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/serve.ts'

export const NO_ISSUE = refuse('not_found', 'The issue does not exist')

type Place = NonNullable<PageBySeen['after']>

type PartRequest = OperatorRequestOf<'listIssueActivity'>

export function issuesRoutes({ serve, storage }: OperatorDeps): void {
  serve('listIssues', async ({ query, environment: { id: environmentId }, walk }) => {
    const { limit: _, cursor: __, assigned, from, to, seenFrom, seenTo, ...rest } = query
    if (!Object.values(rest).every(isStorableText)) return NOTHING
    const filter: IssueFilter = {
      ...rest,
      ...(rest.detectionType === undefined ? {} : { detectionType: normalised(rest.detectionType) }),
      ...(assigned === undefined ? {} : { assigned: assigned === 'true' }),
      seenFrom: optionalTimeOf('from', from) ?? optionalTimeOf('seenFrom', seenFrom),
      seenTo: optionalTimeOf('to', to) ?? optionalTimeOf('seenTo', seenTo),
    }
    return listPage(
      walk,
      (page) => storage.listIssues(environmentId, filter, page),
      toIssueSummary,
      ({ lastSeen, id }: IssueRow) => ({ lastSeen, id }),
    )
  })

  serve('listIssueTrends', async ({ query, environment: { id: environmentId }, at }) => {
    const ids = [...new Set(query.ids.toLowerCase().split(','))]
    const slots = {
      // The present moment falls into the last slot.
      from: at + 1 - LIMITS.issueTrendDays * DAY_MS,
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
    return toIssue(found(await storage.findIssue(environment.id, params.issueId), NO_ISSUE))
  })

  serve('listOccurrences', (given) => listOccurrences(given, 'DETECTION'))
  serve('listRecoveries', (given) => listOccurrences(given, 'RECOVERY'))

  serve('listAffectedRuns', (given) =>
    listPart(given, storage.listAffectedRuns, toAffectedRun, ({ lastSeen, key }) => ({ at: lastSeen, key })),
  )

  serve('listAffectedAgents', (given) =>
    listPart(given, storage.listAffectedAgents, toAffectedAgent, ({ lastSeen, key }) => ({ at: lastSeen, key })),
  )

  serve('listIssueActivity', (given) =>
    listPart(given, storage.listIssueActivity, toActivity, ({ at, id }) => ({ at, key: id })),
  )

  function listOccurrences(given: PartRequest, kind: 'DETECTION' | 'RECOVERY') {
    return listPart(
      given,
      (environmentId, id, page) => storage.listIssueOccurrences(environmentId, id, kind, page),
      toIssueRecord,
      ({ seenAt, id }) => ({ at: seenAt, key: id }),
    )
  }

  async function listPart<Row, Item>(
    { params: { issueId }, environment, walk }: PartRequest,
    read: (environmentId: string, issueId: string, page: PageBySeen) => Promise<Page<Row>>,
    toItem: (row: Row) => Item,
    placeOf: (row: Row) => Place,
  ) {
    const page = await listPage(walk, (asked) => read(environment.id, issueId, asked), toItem, placeOf)
    if (page.items.length === 0) found(await storage.findIssue(environment.id, issueId), NO_ISSUE)
    return page
  }
}
