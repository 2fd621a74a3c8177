import type { ActKind, MethodsOf, Sql } from './engine/sql.ts'
import { alertsActs } from './messages/alerts.ts'
import { apiKeysActs } from './tenants/api-keys.ts'
import { approvalListsActs } from './approvals/approval-lists.ts'
import { approvalRowsActs } from './approvals/approval-rows.ts'
import { approvalsActs } from './approvals/approvals.ts'
import { grantsActs } from './approvals/grants.ts'
import { twoPeopleActs } from './approvals/two-people.ts'
import { stoppedApprovalsActs } from './approvals/stopped-approvals.ts'
import { recordedInputActs } from './approvals/recorded-input.ts'
import { auditActs } from './people/audit.ts'
import { configurationClientsActs } from './policies/configuration-clients.ts'
import { configurationsActs, toolLabelsActs } from './policies/configurations.ts'
import { decisionsActs } from './policies/decisions.ts'
import { deploymentsActs } from './policies/deployments.ts'
import { policiesActs } from './policies/policies.ts'
import { promptsActs } from './policies/prompts.ts'
import { stopAndResumeActs } from './policies/stop-and-resume.ts'
import { stopsActs } from './policies/stops.ts'
import { publishActs } from './policies/publish.ts'
import { sharesActs } from './policies/shares.ts'
import { simulationsActs, toolEventsActs } from './policies/simulations.ts'
import { controlActs, environmentsActs, workspacesActs } from './tenants/workspaces.ts'
import { deliveriesActs } from './messages/deliveries.ts'
import { noticesActs } from './messages/announcements.ts'
import { noticeSubjectsActs, notificationsActs } from './messages/notifications.ts'
import { environmentDeletionActs } from './data/environment-deletion.ts'
import { erasuresActs } from './data/erasures.ts'
import { eventsActs } from './record/events.ts'
import { exportsActs } from './data/exports.ts'
import { idempotencyActs, workActs } from './engine/work.ts'
import { failuresActs } from './issues/failures.ts'
import { issueActivityActs } from './issues/issue-fingerprints.ts'
import { issueAffectedActs } from './issues/issue-affected.ts'
import { issueChangesActs, issueGroupingActs } from './issues/issue-changes.ts'
import { issueRecordsActs, reviewActs, loopsActs } from './issues/issue-records.ts'
import { issuesActs } from './issues/issues.ts'
import { invitationsActs } from './people/invitations.ts'
import { operatorTokensActs } from './people/operator-tokens.ts'
import { directoryActs, directoryGroupsActs } from './people/directory.ts'
import { groupRolesActs } from './people/group-roles.ts'
import { operatorsActs } from './people/operators.ts'
import { sessionsActs, signInActs } from './people/sign-in.ts'
import { slackLinksActs } from './messages/slack-links.ts'
import { packingActs } from './data/packing.ts'
import { pricesActs } from './runs/uncosted-sums.ts'
import { rejectionsActs } from './record/rejections.ts'
import { expiredRowsActs, expiredRunsActs } from './data/retention-removal.ts'
import { previewActs } from './data/retention-preview.ts'
import { retentionActs } from './data/retention-settings.ts'
import { revisionActs } from './engine/revision.ts'
import { agentListActs } from './runs/agent-list.ts'
import { runViewsActs } from './runs/run-views.ts'
import { runsActs } from './runs/runs.ts'
import { judgementsActs, scoresActs } from './runs/scores.ts'
import { runSearchActs, searchActs } from './runs/search.ts'
import { searchIndexActs, searchSettingsActs } from './runs/search-index.ts'
import { stalledActs, traceEndsActs } from './runs/stalled-rule.ts'
import { usageActs, usagePointsActs } from './runs/usage-points.ts'
import { versionResultsActs } from './runs/version-results.ts'
import { webhooksActs } from './messages/webhooks.ts'

export const ACTS = {
  ...alertsActs,
  ...apiKeysActs,
  ...approvalListsActs,
  ...approvalRowsActs,
  ...approvalsActs,
  ...twoPeopleActs,
  ...grantsActs,
  ...recordedInputActs,
  ...stoppedApprovalsActs,
  ...auditActs,
  ...configurationClientsActs,
  ...configurationsActs,
  ...decisionsActs,
  ...deploymentsActs,
  ...policiesActs,
  ...promptsActs,
  ...publishActs,
  ...stopAndResumeActs,
  ...stopsActs,
  ...toolLabelsActs,
  ...sharesActs,
  ...simulationsActs,
  ...toolEventsActs,
  ...controlActs,
  ...deliveriesActs,
  ...noticesActs,
  ...noticeSubjectsActs,
  ...environmentsActs,
  ...environmentDeletionActs,
  ...erasuresActs,
  ...eventsActs,
  ...packingActs,
  ...exportsActs,
  ...idempotencyActs,
  ...failuresActs,
  ...issueActivityActs,
  ...issueAffectedActs,
  ...issueChangesActs,
  ...issueGroupingActs,
  ...issueRecordsActs,
  ...issuesActs,
  ...loopsActs,
  ...reviewActs,
  ...invitationsActs,
  ...notificationsActs,
  ...operatorTokensActs,
  ...directoryActs,
  ...directoryGroupsActs,
  ...groupRolesActs,
  ...operatorsActs,
  ...sessionsActs,
  ...signInActs,
  ...slackLinksActs,
  ...pricesActs,
  ...rejectionsActs,
  ...retentionActs,
  ...expiredRunsActs,
  ...expiredRowsActs,
  ...previewActs,
  ...revisionActs,
  ...agentListActs,
  ...runViewsActs,
  ...runsActs,
  ...judgementsActs,
  ...scoresActs,
  ...runSearchActs,
  ...searchActs,
  ...searchIndexActs,
  ...searchSettingsActs,
  ...stalledActs,
  ...traceEndsActs,
  ...usageActs,
  ...usagePointsActs,
  ...versionResultsActs,
  ...webhooksActs,
  ...workActs,
  ...workspacesActs,
}

export type ActMethods = MethodsOf<typeof ACTS>
export type ActName = keyof ActMethods

export function actMethods(call: (name: ActName, kind: ActKind, args: unknown[]) => Promise<unknown>) {
  const method = (name: ActName) => [name, (...args: unknown[]) => call(name, ACTS[name].kind, args)]
  return Object.fromEntries((Object.keys(ACTS) as ActName[]).map(method)) as unknown as ActMethods
}

export function runAct(sql: Sql, name: ActName, args: unknown[]): Promise<unknown> {
  const run = ACTS[name].run as (sql: Sql, ...args: unknown[]) => Promise<unknown>
  return run(sql, ...args)
}

/** The runs that a finished act has changed behind their writer's cache. */
export function changedRunsOf(name: ActName, args: unknown[], result: unknown): string[] {
  const act = ACTS[name]
  if (!('changedRuns' in act)) return []
  return (act.changedRuns as (result: unknown, ...args: unknown[]) => string[])(result, ...args)
}
