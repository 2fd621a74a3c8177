import type { ActKind, MethodsOf } from './act.ts'
import type { Sql } from './sql.ts'
import { alertsActs } from './alerts.ts'
import { apiKeysActs } from './api-keys.ts'
import { approvalListsActs } from './approvals/approval-lists.ts'
import { approvalRowsActs } from './approvals/approval-rows.ts'
import { approvalsActs } from './approvals/approvals.ts'
import { recordedInputActs } from './approvals/recorded-input.ts'
import { auditActs } from './audit.ts'
import { configurationClientsActs } from './configuration/configuration-clients.ts'
import { configurationsActs } from './configuration/configurations.ts'
import { deploymentsActs } from './configuration/deployments.ts'
import { policiesActs } from './configuration/policies.ts'
import { promptsActs } from './configuration/prompts.ts'
import { publishActs } from './configuration/publish.ts'
import { simulationsActs } from './configuration/simulations.ts'
import { toolEventsActs } from './configuration/tool-events.ts'
import { controlActs } from './control.ts'
import { deliveriesActs } from './webhooks/deliveries.ts'
import { noticesActs } from './webhooks/notices.ts'
import { noticeSubjectsActs } from './webhooks/notice-subjects.ts'
import { environmentDeletionActs } from './erasure/environment-deletion.ts'
import { environmentsActs } from './environments.ts'
import { erasuresActs } from './erasure/erasures.ts'
import { eventsActs } from './events.ts'
import { exportsActs } from './exports.ts'
import { idempotencyActs } from './idempotency.ts'
import { failuresActs } from './issues/failures.ts'
import { issueActivityActs } from './issues/issue-activity.ts'
import { issueAffectedActs } from './issues/issue-affected.ts'
import { issueChangesActs } from './issues/issue-changes.ts'
import { issueGroupingActs } from './issues/issue-grouping.ts'
import { issueRecordsActs } from './issues/issue-records.ts'
import { loopsActs } from './issues/loops.ts'
import { issuesActs } from './issues/issues.ts'
import { reviewActs } from './issues/review.ts'
import { invitationsActs } from './operators/invitations.ts'
import { notificationsActs } from './operators/notifications.ts'
import { operatorTokensActs } from './operators/operator-tokens.ts'
import { directoryActs } from './operators/directory.ts'
import { directoryGroupsActs } from './operators/directory-groups.ts'
import { groupRolesActs } from './operators/group-roles.ts'
import { operatorsActs } from './operators/operators.ts'
import { sessionsActs } from './operators/sessions.ts'
import { signInActs } from './operators/sign-in.ts'
import { slackLinksActs } from './operators/slack-links.ts'
import { packingActs } from './packing.ts'
import { pricesActs } from './prices.ts'
import { rejectionsActs } from './append/rejections.ts'
import { expiredRowsActs } from './retention/expired-rows.ts'
import { expiredRunsActs } from './retention/expired-runs.ts'
import { previewActs } from './retention/preview.ts'
import { retentionActs } from './retention/retention.ts'
import { revisionActs } from './revision.ts'
import { agentListActs } from './agent-list.ts'
import { runViewsActs } from './runs/run-views.ts'
import { runsActs } from './runs/runs.ts'
import { scoresActs } from './scores.ts'
import { runSearchActs } from './search/run-search.ts'
import { searchActs } from './search/search.ts'
import { searchIndexActs } from './search/search-index.ts'
import { searchSettingsActs } from './search/search-settings.ts'
import { stalledActs } from './runs/stalled.ts'
import { traceEndsActs } from './runs/trace-ends.ts'
import { usageActs } from './usage/usage.ts'
import { usagePointsActs } from './usage/usage-points.ts'
import { versionResultsActs } from './usage/version-results.ts'
import { webhooksActs } from './webhooks/webhooks.ts'
import { workActs } from './work.ts'
import { workspacesActs } from './workspaces.ts'

export const ACTS = {
  ...alertsActs,
  ...apiKeysActs,
  ...approvalListsActs,
  ...approvalRowsActs,
  ...approvalsActs,
  ...recordedInputActs,
  ...auditActs,
  ...configurationClientsActs,
  ...configurationsActs,
  ...deploymentsActs,
  ...policiesActs,
  ...promptsActs,
  ...publishActs,
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
