import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { ISSUE_FILTERS } from '@tacho/contract/issues/issue-filters.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'
import { DAY_MS, isoTime } from '../../storage/engine/times.ts'
import {
  normalised,
  toActivity,
  toAffectedAgent,
  toAffectedRun,
  toIssue,
  toIssueRecord,
  toIssueSummary,
  issueRecordJson,
} from '../../domain/issues/issue.ts'
import type {
  PageBySeen,
  ListedIssueRow,
  ChangedIssue,
  IssueActivityRow,
  IssueWhole,
} from '../../storage/issues/issues.ts'
import type { Page } from '../../storage/engine/page.ts'
import { storedFilter, refuseField, futureTimeOf } from '../web/field.ts'
import { foundOr, refuse, type Refusal } from '../web/reply-error.ts'
import { listPage, NOTHING, listById } from '../web/paging.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/operator-serve.ts'
import { RawJson } from '../web/serve-route.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'

const NO_ISSUE = refuse('not_found', 'The issue does not exist')

type Place = NonNullable<PageBySeen['after']>

type PartRequest = OperatorRequestOf<'listIssueActivity'>

export function issuesRoutes({ serve, storage }: OperatorDeps): void {
  serve('listIssues', async ({ query, environment: { id: environmentId }, paging }) => {
    const filter = storedFilter(ISSUE_FILTERS, query)
    if (filter === null) return NOTHING
    const { detectionType } = filter
    if (detectionType !== undefined) filter.detectionType = normalised(detectionType)
    return listPage(
      paging,
      (page) => storage.listIssues(environmentId, { ...filter, sort: query.sort }, page),
      (row) => ({ ...toIssueSummary(row), agentIds: row.agentIds }),
      ({ lastSeen, firstSeen, id }: ListedIssueRow) => ({ lastSeen, firstSeen, id }),
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
    const issue = toIssue(foundOr(await storage.findIssue(environment.id, params.issueId), NO_ISSUE))
    return { ...issue, affectedUsers: await storage.countAffectedUsers(environment.id, issue.id) }
  })

  serve('listOccurrences', (partRequest) => listOccurrences(partRequest, 'DETECTION'))
  serve('listRecoveries', (partRequest) => listOccurrences(partRequest, 'RECOVERY'))

  serve('listAffectedRuns', (partRequest) =>
    listPart(partRequest, storage.listAffectedRuns, toAffectedRun, ({ lastSeen, key }) => ({ at: lastSeen, key })),
  )

  serve('listAffectedAgents', (partRequest) =>
    listPart(partRequest, storage.listAffectedAgents, toAffectedAgent, ({ lastSeen, key }) => ({ at: lastSeen, key })),
  )

  serve('listIssueActivity', (partRequest) =>
    listPart(partRequest, storage.listIssueActivity, toActivity, ({ at, id }) => ({ at, key: id })),
  )

  function listOccurrences(partRequest: PartRequest, kind: 'DETECTION' | 'RECOVERY') {
    return listPart(
      partRequest,
      (environmentId, id, page) => storage.listIssueOccurrences(environmentId, id, kind, page),
      toIssueRecord,
      ({ seenAt, id }) => ({ at: seenAt, key: id }),
    )
  }

  async function listPart<Row, Item>(
    { params: { issueId }, environment, paging }: PartRequest,
    read: (environmentId: string, issueId: string, page: PageBySeen) => Promise<Page<Row>>,
    toItem: (row: Row) => Item,
    placeOf: (row: Row) => Place,
  ) {
    const page = await listPage(paging, (asked) => read(environment.id, issueId, asked), toItem, placeOf)
    if (page.items.length === 0) foundOr(await storage.findIssue(environment.id, issueId), NO_ISSUE)
    return page
  }
}

const NO_RECORD = refuse('not_found', 'The issue record does not exist')

export function operatorIssueRecordsRoutes({ serve, storage, work }: OperatorDeps): void {
  serve('listIssueRecords', ({ query, environment: { id }, paging }) =>
    listById(paging, (page) => storage.listIssueRecords(id, query, page), toIssueRecord),
  )

  serve('readIssueRecord', async ({ params, environment }) => {
    const record = foundOr(await storage.findIssueRecord(environment.id, params.recordId), NO_RECORD)
    return new RawJson(issueRecordJson(record))
  })

  serve('retryIssueRecord', async ({ params: { recordId: id }, environment, at, audit }) => {
    const retried = foundOr(await storage.retryIssueRecord(environment.id, id, at, audit(id)), NO_RECORD)
    const record = toIssueRecord(retried.record)
    if (!retried.changed) return refuse('conflict', `The record is ${record.status}`, { current: { ...record } })
    work.wake('review_issue_record')
    return record
  })
}

type Asked = Pick<OperatorRequestOf<'reopenIssue'>, 'params' | 'environment' | 'actor' | 'at' | 'audit'>

export function issueChangesRoutes({ serve, storage }: OperatorDeps): void {
  serve('commentIssue', async ({ body: { text }, ...asked }) => {
    const { issue, change } = changeOf(asked)
    if (!(await storage.commentIssue(issue, text, change, asked.audit(issue.id)))) return NO_ISSUE
    const row: IssueActivityRow = { ...change, kind: 'COMMENTED', importedAt: null, text, detail: '{}' }
    return toActivity(row)
  })

  async function changeState(asked: Asked, state: IssueState, ignoredUntil: number | null = null) {
    const { issue, change } = changeOf(asked)
    const entries = asked.audit(issue.id, ignoredUntil === null ? {} : { until: isoTime(ignoredUntil) })
    return changedReply(await storage.changeIssueState(issue, state, change, entries, ignoredUntil))
  }

  serve('resolveIssue', (asked) => changeState(asked, 'RESOLVED'))
  serve('ignoreIssue', ({ query, ...asked }) => {
    const until = query.until === undefined ? null : futureTimeOf('until', query.until, asked.at)
    return changeState(asked, 'IGNORED', until)
  })
  serve('reopenIssue', (asked) => changeState(asked, 'OPEN'))

  serve('assignIssue', async ({ body: { assignee }, ...asked }) => {
    const { issue, change } = changeOf(asked)
    return changedReply(await storage.assignIssue(issue, assignee, change, asked.audit(issue.id, { assignee })))
  })

  serve('mergeIssue', async ({ body, ...asked }) => {
    const into = body.into.toLowerCase()
    const { issue, change } = changeOf(asked)
    const result = await storage.mergeIssues(issue, into, change, asked.audit(issue.id, { into }))
    if (result.outcome === 'merged') return toIssue(result.issue)
    return result.outcome === 'merged_already' ? mergedAlready(result.into) : NOT_MERGED[result.outcome]
  })

  serve('splitIssue', async ({ body: { fingerprints }, ...asked }) => {
    const { issue, change } = changeOf(asked)
    const split = { fingerprints, newIssueId: uuidv7(change.at) }
    const result = await storage.splitIssue(issue, split, change, asked.audit(issue.id, { fingerprints }))
    if (result.outcome === 'split') return toIssue(result.issue)
    return result.outcome === 'merged_already' ? mergedAlready(result.into) : NOT_SPLIT[result.outcome]
  })
}

const NOT_MERGED = {
  no_issue: NO_ISSUE,
  no_target: refuseField('into', 'must be an issue of this environment'),
  same_issue: refuse('conflict', 'An issue cannot be merged into itself or into an issue that was merged into it'),
  too_many_groups: refuse(
    'conflict',
    `The merged issue would have more than ${LIMITS.issueFingerprints} sets of facts`,
  ),
}

const NOT_SPLIT = {
  no_issue: NO_ISSUE,
  no_such_group: refuseField('fingerprints', 'contains a fingerprint that the issue does not have'),
  nothing_left: refuse('conflict', 'An issue must keep at least one set of facts'),
}

function changeOf({ params, environment, actor: { kind, id, name }, at }: Asked) {
  const issue = { environmentId: environment.id, id: params.issueId }
  return { issue, change: { id: uuidv7(at), at, actor: { kind, id, name } } }
}

function changedReply(result: ChangedIssue | null) {
  if (result === null) return NO_ISSUE
  const { changed, issue } = result
  if (changed) return toIssue(issue)
  return issue.mergedInto === null ? conflict(issue) : mergedAlready(issue.mergedInto)
}

function conflict(issue: IssueWhole): Refusal {
  return refuse('conflict', `The issue is ${issue.state}`, { current: { ...toIssue(issue) } })
}

function mergedAlready(into: string): Refusal {
  return refuse('conflict', `The issue was merged into ${into}`, { current: { mergedInto: into } })
}
