import { LIMITS } from '@tacho/contract/limits.ts'
import type { IssueState } from '@tacho/contract/operator/issue.ts'
import type { FastifyRequest } from 'fastify'
import { isoTime } from '../../storage/iso-time.ts'
import { toActivity, toIssue } from '../../domain/issue-view.ts'
import { uuidv7 } from '../../storage/uuid.ts'
import type { ChangedIssue, IssueActivityRow, IssueWhole } from '../../storage/issues.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { environmentOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField, checkTexts, futureTimeOf } from '../field.ts'
import { NO_ISSUE } from './issues.ts'
import type { OperatorDeps } from './serve.ts'

export function issueChangesRoutes({ serve, storage, now }: OperatorDeps): void {
  function ask(request: FastifyRequest, issueId: string, verb: string, detail: object = {}) {
    const at = now()
    const id = issueId.toLowerCase()
    const entry = auditOf(request, at, `issue.${verb}`, { kind: 'issue', id }, detail)
    const actor = { kind: entry.actorKind, id: entry.actorId, name: entry.actorName }
    const change = { id: uuidv7(at), at, actor }
    return { issue: { environmentId: environmentOf(request).id, id }, change, audit: [entry] }
  }

  serve('commentIssue', async ({ params, body: { text }, request }) => {
    checkTexts({ text })
    const { issue, change, audit } = ask(request, params.issueId, 'comment')
    if (!(await storage.commentIssue(issue, text, change, audit))) return NO_ISSUE
    const row: IssueActivityRow = { ...change, kind: 'COMMENTED', importedAt: null, text, detail: '{}' }
    return toActivity(row)
  })

  async function changeState(
    request: FastifyRequest,
    issueId: string,
    verb: string,
    state: IssueState,
    ignoredUntil: number | null = null,
  ) {
    const detail = ignoredUntil === null ? {} : { until: isoTime(ignoredUntil) }
    const { issue, change, audit } = ask(request, issueId, verb, detail)
    return changedReply(await storage.changeIssueState(issue, state, change, audit, ignoredUntil))
  }

  serve('resolveIssue', ({ params, request }) => changeState(request, params.issueId, 'resolve', 'RESOLVED'))
  serve('ignoreIssue', ({ params, query, request }) => {
    const until = query.until === undefined ? null : futureTimeOf('until', query.until, now())
    return changeState(request, params.issueId, 'ignore', 'IGNORED', until)
  })
  serve('reopenIssue', ({ params, request }) => changeState(request, params.issueId, 'reopen', 'OPEN'))

  serve('assignIssue', async ({ params, body: { assignee }, request }) => {
    checkTexts({ assignee })
    const { issue, change, audit } = ask(request, params.issueId, 'assign', { assignee })
    return changedReply(await storage.assignIssue(issue, assignee, change, audit))
  })

  serve('mergeIssue', async ({ params, body, request }) => {
    const into = body.into.toLowerCase()
    const { issue, change, audit } = ask(request, params.issueId, 'merge', { into })
    const result = await storage.mergeIssues(issue, into, change, audit)
    switch (result.outcome) {
      case 'merged':
        return toIssue(result.issue)
      case 'no_issue':
        return NO_ISSUE
      case 'no_target':
        return refuseField('into', 'must be an issue of this environment')
      case 'same_issue':
        return refuse('conflict', 'An issue cannot be merged into itself or into an issue that was merged into it')
      case 'merged_already':
        return mergedAlready(result.into)
      case 'too_many_groups':
        return refuse('conflict', `The merged issue would have more than ${LIMITS.issueFingerprints} sets of facts`)
    }
  })

  serve('splitIssue', async ({ params, body: { fingerprints }, request }) => {
    const { issue, change, audit } = ask(request, params.issueId, 'split', { fingerprints })
    const split = { fingerprints, newIssueId: uuidv7(change.at) }
    const result = await storage.splitIssue(issue, split, change, audit)
    switch (result.outcome) {
      case 'split':
        return toIssue(result.issue)
      case 'no_issue':
        return NO_ISSUE
      case 'no_such_group':
        return refuseField('fingerprints', 'contains a fingerprint that the issue does not have')
      case 'nothing_left':
        return refuse('conflict', 'An issue must keep at least one set of facts')
      case 'merged_already':
        return mergedAlready(result.into)
    }
  })
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
