import type { FastifyInstance } from 'fastify'
import type { Deps } from '../deps.ts'
import type { ApprovalReader } from '../approval-reader.ts'
import { aftermathRoutes } from './aftermath.ts'
import { alertsRoutes } from './alerts.ts'
import { archivesRoutes } from './archives.ts'
import { apiKeysRoutes } from './api-keys.ts'
import { approvalDecisionsRoutes } from './approval-decisions.ts'
import { approvalStreamRoutes } from './approval-stream.ts'
import { operatorApprovalsRoutes } from './approvals.ts'
import { auditLogRoutes } from './audit-log.ts'
import { backupsRoutes } from './backups.ts'
import { completenessRoutes } from './completeness.ts'
import { configurationClientsRoutes } from './configuration-clients.ts'
import { deploymentsRoutes } from './deployments.ts'
import { doctorRoutes } from './doctor.ts'
import { environmentsRoutes } from './environments.ts'
import { erasuresRoutes } from './erasures.ts'
import { operatorEventsRoutes } from './events.ts'
import { problemsRoutes } from './problems.ts'
import { exportsRoutes } from './exports.ts'
import { invitationsRoutes } from './invitations.ts'
import { meRoutes } from './me.ts'
import { notificationsRoutes } from './notifications.ts'
import { operatorsRoutes } from './operators.ts'
import { policiesRoutes } from './policies.ts'
import { pricesRoutes } from './prices.ts'
import { promptsRoutes } from './prompts.ts'
import { issueChangesRoutes } from './issue-changes.ts'
import { operatorIssueRecordsRoutes } from './issue-records.ts'
import { issuesRoutes } from './issues.ts'
import { retentionRoutes } from './retention.ts'
import { agentsRoutes } from './agents.ts'
import { runViewsRoutes } from './run-views.ts'
import { importsRoutes } from './imports.ts'
import { operatorRunsRoutes } from './runs.ts'
import { stalledRuleRoutes } from './stalled-rule.ts'
import { scoresRoutes } from './scores.ts'
import { runSearchRoutes } from './run-search.ts'
import { searchRoutes } from './search.ts'
import { operatorDeps } from './serve.ts'
import { simulationsRoutes } from './simulations.ts'
import { createAttempts } from './sign-in/attempts.ts'
import { secondFactorRoutes } from './second-factor.ts'
import { sessionsRoutes } from './sessions.ts'
import { signInRoutes } from './sign-in.ts'
import { slackLinksRoutes } from './slack-links.ts'
import { tokensRoutes } from './tokens.ts'
import { usageRoutes } from './usage.ts'
import { webhooksRoutes } from './webhooks.ts'
import { workspacesRoutes } from './workspaces.ts'

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
