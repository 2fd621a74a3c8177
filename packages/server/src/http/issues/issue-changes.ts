import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { toActivity, toIssue } from '../../domain/issues/issue-view.ts'
import { uuidv7 } from '../../storage/engine/uuid.ts'
import type { ChangedIssue, IssueActivityRow, IssueWhole } from '../../storage/issues/issues.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { refuseField, futureTimeOf } from '../web/field.ts'
import { NO_ISSUE } from './issues.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/serve.ts'

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

  serve('splitIssue', async ({ body: { fingerprints }, ...asked }) => {
    const { issue, change } = changeOf(asked)
    const split = { fingerprints, newIssueId: uuidv7(change.at) }
    const result = await storage.splitIssue(issue, split, change, asked.audit(issue.id, { fingerprints }))
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
