import type { FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { aftermathRoutes } from '../approvals/aftermath.ts'
import { alertsRoutes } from '../messages/alerts.ts'
import { archivesRoutes } from '../data/archives.ts'
import { apiKeysRoutes } from '../tenants/api-keys.ts'
import { approvalDecisionsRoutes } from '../approvals/approval-decisions.ts'
import { approvalStreamRoutes } from '../approvals/approval-stream.ts'
import { operatorApprovalsRoutes } from '../approvals/operator-approvals.ts'
import { auditLogRoutes } from '../people/audit-log.ts'
import { backupsRoutes } from '../data/backups.ts'
import { completenessRoutes } from '../record/completeness.ts'
import { configurationClientsRoutes } from '../policies/operator-configuration-clients.ts'
import { deploymentsRoutes } from '../policies/deployments.ts'
import { doctorRoutes } from './doctor.ts'
import { environmentsRoutes } from '../tenants/environments.ts'
import { erasuresRoutes } from '../data/erasures.ts'
import { operatorEventsRoutes } from '../record/operator-events.ts'
import { problemsRoutes } from '../runs/problems.ts'
import { exportsRoutes } from '../data/exports.ts'
import { invitationsRoutes } from '../people/invitations.ts'
import { meRoutes } from '../people/me.ts'
import { notificationsRoutes } from '../messages/notifications.ts'
import { operatorsRoutes } from '../people/operators.ts'
import { policiesRoutes } from '../policies/policies.ts'
import { pricesRoutes } from '../runs/prices.ts'
import { promptsRoutes } from '../policies/prompts.ts'
import { issueChangesRoutes } from '../issues/issue-changes.ts'
import { operatorIssueRecordsRoutes } from '../issues/operator-issue-records.ts'
import { issuesRoutes } from '../issues/issues.ts'
import { retentionRoutes } from '../data/retention.ts'
import { agentsRoutes } from '../runs/agents.ts'
import { runViewsRoutes } from '../runs/run-views.ts'
import { importsRoutes } from '../data/imports.ts'
import { operatorRunsRoutes } from '../runs/operator-runs.ts'
import { stalledRuleRoutes } from '../runs/stalled-rule.ts'
import { scoresRoutes } from '../runs/scores.ts'
import { runSearchRoutes } from '../runs/run-search.ts'
import { searchRoutes } from '../runs/search.ts'
import { operatorDeps } from './serve.ts'
import { simulationsRoutes } from '../policies/simulations.ts'
import { createAttempts } from '../people/attempts.ts'
import { secondFactorRoutes } from '../people/second-factor.ts'
import { sessionsRoutes } from '../people/sessions.ts'
import { signInRoutes } from '../people/sign-in.ts'
import { slackLinksRoutes } from '../messages/slack-links.ts'
import { tokensRoutes } from '../people/tokens.ts'
import { usageRoutes } from '../runs/usage.ts'
import { webhooksRoutes } from '../messages/webhooks.ts'
import { workspacesRoutes } from '../tenants/workspaces.ts'

export function operatorRoutes(app: FastifyInstance, given: Deps, approvals: ApprovalReader): void {
  const deps = operatorDeps(app, given)
  workspacesRoutes(deps)
  environmentsRoutes(deps)
  apiKeysRoutes(deps)
  archivesRoutes(deps)
  tokensRoutes(deps)
  auditLogRoutes(deps)
  meRoutes(deps)
  operatorsRoutes(deps)
  const attempts = createAttempts()
  invitationsRoutes(deps, attempts)
  signInRoutes(deps, attempts)
  sessionsRoutes(deps, attempts)
  secondFactorRoutes(deps, attempts)
  operatorRunsRoutes(deps)
  agentsRoutes(deps)
  runViewsRoutes(deps)
  retentionRoutes(deps)
  scoresRoutes(deps)
  searchRoutes(deps)
  runSearchRoutes(deps)
  stalledRuleRoutes(deps)
  pricesRoutes(deps)
  erasuresRoutes(deps)
  alertsRoutes(deps)
  operatorEventsRoutes(deps)
  problemsRoutes(deps)
  usageRoutes(deps)
  completenessRoutes(deps)
  operatorApprovalsRoutes(deps, approvals)
  approvalDecisionsRoutes(deps, approvals)
  approvalStreamRoutes(app, deps, approvals)
  aftermathRoutes(deps, approvals)
  promptsRoutes(deps)
  policiesRoutes(deps)
  deploymentsRoutes(deps)
  configurationClientsRoutes(deps)
  simulationsRoutes(deps)
  issuesRoutes(deps)
  issueChangesRoutes(deps)
  operatorIssueRecordsRoutes(deps)
  webhooksRoutes(deps)
  slackLinksRoutes(deps)
  notificationsRoutes(deps)
  backupsRoutes(deps)
  exportsRoutes(app, deps, approvals)
  importsRoutes(deps)
  doctorRoutes(deps)
}
