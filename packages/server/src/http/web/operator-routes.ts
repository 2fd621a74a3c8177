import type { FastifyInstance } from 'fastify'
import type { Deps } from './deps.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { aftermathRoutes } from '../approvals/aftermath.ts'
import { alertsRoutes } from '../messages/alerts.ts'
import { archivesRoutes } from '../data/archives.ts'
import { apiKeysRoutes } from '../tenants/api-keys.ts'
import { approvalDecisionsRoutes } from '../approvals/approval-decisions.ts'
import { approvalStreamRoutes } from '../approvals/approval-stream.ts'
import { grantsRoutes } from '../approvals/grants.ts'
import { operatorApprovalsRoutes } from '../approvals/operator-approvals.ts'
import { proposalRoutes } from '../approvals/proposal.ts'
import { auditLogRoutes, meRoutes, operatorsRoutes, tokensRoutes } from '../people/operators.ts'
import { backupsRoutes } from '../data/backups.ts'
import { completenessRoutes, operatorEventsRoutes } from '../record/operator-events.ts'
import { configurationClientsRoutes, deploymentsRoutes } from '../policies/deployments.ts'
import { doctorRoutes } from './doctor.ts'
import { environmentsRoutes, workspacesRoutes } from '../tenants/workspaces.ts'
import { erasuresRoutes } from '../data/erasures.ts'
import {
  problemsRoutes,
  agentsRoutes,
  runViewsRoutes,
  operatorRunsRoutes,
  stalledRuleRoutes,
} from '../runs/operator-runs.ts'
import { exportsRoutes } from '../data/exports.ts'
import { invitationsRoutes } from '../people/invitations.ts'
import { notificationsRoutes } from '../messages/notifications.ts'
import { policiesRoutes } from '../policies/policies.ts'
import { pricesRoutes } from '../runs/prices.ts'
import { simulationsRoutes } from '../policies/simulations.ts'
import { toolLabelsRoutes } from '../policies/tool-labels.ts'
import { stopsRoutes } from '../policies/stops.ts'
import { promptsRoutes } from '../policies/prompts.ts'
import { issueChangesRoutes, operatorIssueRecordsRoutes, issuesRoutes } from '../issues/issues.ts'
import { retentionRoutes } from '../data/retention.ts'
import { importsRoutes } from '../data/imports.ts'
import { scoresRoutes } from '../runs/scores.ts'
import { runSearchRoutes, searchRoutes } from '../runs/search.ts'
import { operatorDeps } from './operator-serve.ts'
import { createAttempts } from '../people/attempts.ts'
import { secondFactorRoutes, sessionsRoutes } from '../people/sessions.ts'
import { signInRoutes } from '../people/sign-in.ts'
import { slackLinksRoutes } from '../messages/slack.ts'
import { usageRoutes } from '../runs/usage.ts'
import { webhooksRoutes } from '../messages/webhooks.ts'

export function operatorRoutes(app: FastifyInstance, givenDeps: Deps, approvals: ApprovalReader): void {
  const deps = operatorDeps(app, givenDeps)
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
  grantsRoutes(deps)
  proposalRoutes(deps)
  approvalDecisionsRoutes(deps, approvals)
  approvalStreamRoutes(app, deps, approvals)
  aftermathRoutes(deps, approvals)
  promptsRoutes(deps)
  policiesRoutes(deps)
  deploymentsRoutes(deps)
  configurationClientsRoutes(deps)
  stopsRoutes(deps, approvals)
  toolLabelsRoutes(deps)
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
