/** Every portable act, by name: what each engine builds its methods from. Appending events is each engine's own. */
import type { ApprovalStore } from '../approvals.ts'
import type { AuditStore } from '../audit.ts'
import type { DeploymentStore } from '../deployments.ts'
import type { OperatorStore } from '../operators.ts'
import type { PolicyStore } from '../policies.ts'
import type { PromptStore } from '../prompts.ts'
import type { SignInStore } from '../sign-in.ts'
import type { SimulationStore } from '../simulations.ts'
import type { IdempotencyStore } from '../idempotency.ts'
import type { IssueRecordStore } from '../issue-records.ts'
import type { IssueStore } from '../issues.ts'
import type { EventStore } from '../events.ts'
import type { RunStore } from '../runs.ts'
import type { ControlStore } from '../storage.ts'
import type { WebhookStore } from '../webhooks.ts'
import type { WorkStore } from '../work.ts'
import * as apiKeys from './api-keys.ts'
import * as approvalLists from './approvals/approval-lists.ts'
import { findApproval, findApprovals } from './approvals/approval-rows.ts'
import * as approvals from './approvals/approvals.ts'
import { findRecordedInput } from './approvals/recorded-input.ts'
import * as audit from './audit.ts'
import { readConfiguration } from './configuration/configurations.ts'
import * as control from './control.ts'
import * as deliveries from './deliveries.ts'
import * as deployments from './configuration/deployments.ts'
import * as environments from './environments.ts'
import * as events from './events.ts'
import * as idempotency from './idempotency.ts'
import * as invitations from './operators/invitations.ts'
import * as issueActivity from './issues/issue-activity.ts'
import * as issueAffected from './issues/issue-affected.ts'
import * as issueChanges from './issues/issue-changes.ts'
import * as issueGrouping from './issues/issue-grouping.ts'
import * as issueRecords from './issues/issue-records.ts'
import * as issues from './issues/issues.ts'
import * as operatorTokens from './operators/operator-tokens.ts'
import * as operators from './operators/operators.ts'
import * as policies from './configuration/policies.ts'
import * as prompts from './configuration/prompts.ts'
import { publish } from './configuration/publish.ts'
import * as rejections from './rejections.ts'
import { decideIssueRecords } from './issues/review.ts'
import { controlRevision } from './revision.ts'
import * as runs from './runs.ts'
import * as sessions from './operators/sessions.ts'
import * as signIn from './operators/sign-in.ts'
import * as simulations from './configuration/simulations.ts'
import type { Sql } from './sql.ts'
import { listToolEvents } from './configuration/tool-events.ts'
import * as usage from './usage.ts'
import * as webhooks from './webhooks.ts'
import * as work from './work.ts'
import * as workspaces from './workspaces.ts'

type Nouns = ControlStore &
  EventStore &
  RunStore &
  ApprovalStore &
  AuditStore &
  OperatorStore &
  SignInStore &
  PromptStore &
  PolicyStore &
  DeploymentStore &
  SimulationStore &
  WorkStore &
  IssueRecordStore &
  IssueStore &
  WebhookStore &
  IdempotencyStore
export type ActName = Exclude<keyof Nouns, 'appendEvents'>
/** The methods of Storage that are portable acts. */
export type ActMethods = Pick<Nouns, ActName>

type Run<Name extends ActName> = (sql: Sql, ...args: Parameters<Nouns[Name]>) => ReturnType<Nouns[Name]>

interface Act<Name extends ActName> {
  readonly kind: ActKind
  readonly run: Run<Name>
}

/**
 * A look needs no transaction: it is one statement, or some that may see the store at different moments. A read runs on
 * one snapshot; a write is one read-write transaction.
 */
export type ActKind = 'look' | 'read' | 'write'

const look = <Name extends ActName>(run: Run<Name>): Act<Name> => ({ kind: 'look', run })
const read = <Name extends ActName>(run: Run<Name>): Act<Name> => ({ kind: 'read', run })
const write = <Name extends ActName>(run: Run<Name>): Act<Name> => ({ kind: 'write', run })

export const ACTS: { readonly [Name in ActName]: Act<Name> } = {
  initialise: write<'initialise'>(control.initialise),
  controlRevision: look<'controlRevision'>(controlRevision),
  secret: write<'secret'>(control.secret),
  touchCredentials: write<'touchCredentials'>(control.touchCredentials),
  createWorkspace: write<'createWorkspace'>(workspaces.createWorkspace),
  listWorkspaces: read<'listWorkspaces'>(workspaces.listWorkspaces),
  findWorkspace: read<'findWorkspace'>(workspaces.findWorkspace),
  createEnvironment: write<'createEnvironment'>(environments.createEnvironment),
  listEnvironments: read<'listEnvironments'>(environments.listEnvironments),
  findEnvironment: read<'findEnvironment'>(environments.findEnvironment),
  createApiKey: write<'createApiKey'>(apiKeys.createApiKey),
  listApiKeys: read<'listApiKeys'>(apiKeys.listApiKeys),
  findApiKey: look<'findApiKey'>(apiKeys.findApiKey),
  revokeApiKey: write<'revokeApiKey'>(apiKeys.revokeApiKey),
  createOperatorToken: write<'createOperatorToken'>(operatorTokens.createOperatorToken),
  listOperatorTokens: read<'listOperatorTokens'>(operatorTokens.listOperatorTokens),
  revokeOperatorToken: write<'revokeOperatorToken'>(operatorTokens.revokeOperatorToken),
  revokeOtherOperatorTokens: write<'revokeOtherOperatorTokens'>(operatorTokens.revokeOtherOperatorTokens),
  findOperatorToken: read<'findOperatorToken'>(operatorTokens.findOperatorToken),
  listOperators: read<'listOperators'>(operators.listOperators),
  findOperator: read<'findOperator'>(operators.findOperator),
  findOperatorByEmail: read<'findOperatorByEmail'>(operators.findOperatorByEmail),
  changeOperatorRole: write<'changeOperatorRole'>(operators.changeOperatorRole),
  deleteOperator: write<'deleteOperator'>(operators.deleteOperator),
  createOperator: write<'createOperator'>(operators.createOperator),
  verifyOperatorEmail: write<'verifyOperatorEmail'>(operators.verifyOperatorEmail),
  createInvitation: write<'createInvitation'>(invitations.createInvitation),
  listInvitations: read<'listInvitations'>(invitations.listInvitations),
  revokeInvitation: write<'revokeInvitation'>(invitations.revokeInvitation),
  findInvitation: read<'findInvitation'>(invitations.findInvitation),
  findInvitationsFor: read<'findInvitationsFor'>(invitations.findInvitationsFor),
  acceptInvitation: write<'acceptInvitation'>(invitations.acceptInvitation),
  findSession: read<'findSession'>(sessions.findSession),
  listSessions: read<'listSessions'>(sessions.listSessions),
  endSessions: write<'endSessions'>(sessions.endSessions),
  readPassword: read<'readPassword'>(sessions.readPassword),
  setPassword: write<'setPassword'>(sessions.setPassword),
  useCode: write<'useCode'>(sessions.useCode),
  removeSecondFactor: write<'removeSecondFactor'>(sessions.removeSecondFactor),
  deleteExpiredSignIns: write<'deleteExpiredSignIns'>(sessions.deleteExpiredSignIns),
  findSignIn: read<'findSignIn'>(signIn.findSignIn),
  createSignIn: write<'createSignIn'>(signIn.createSignIn),
  updateSignIn: write<'updateSignIn'>(signIn.updateSignIn),
  deleteSignIn: write<'deleteSignIn'>(signIn.deleteSignIn),
  appendAudit: write<'appendAudit'>(audit.appendAudit),
  listAudit: read<'listAudit'>(audit.listAudit),
  findRun: look<'findRun'>(runs.findRun),
  listRuns: look<'listRuns'>(runs.listRuns),
  findEvent: read<'findEvent'>(events.findEvent),
  readTimeline: read<'readTimeline'>(events.readTimeline),
  listEvents: look<'listEvents'>(events.listEvents),
  listEventRows: read<'listEventRows'>(events.listEventRows),
  findRejection: read<'findRejection'>(rejections.findRejection),
  readUsage: read<'readUsage'>(usage.readUsage),
  claimWork: write<'claimWork'>(work.claimWork),
  extendWork: write<'extendWork'>(work.extendWork),
  postponeWork: write<'postponeWork'>(work.postponeWork),
  finishWork: write<'finishWork'>(work.finishWork),
  workBacklog: look<'workBacklog'>(work.workBacklog),
  receiveIssueRecord: write<'receiveIssueRecord'>(issueRecords.receiveIssueRecord),
  findIssueRecord: read<'findIssueRecord'>(issueRecords.findIssueRecord),
  listIssueRecords: read<'listIssueRecords'>(issueRecords.listIssueRecords),
  startReview: write<'startReview'>(issueRecords.startReview),
  decideIssueRecords: write<'decideIssueRecords'>(decideIssueRecords),
  failIssueRecord: write<'failIssueRecord'>(issueRecords.failIssueRecord),
  retryIssueRecord: write<'retryIssueRecord'>(issueRecords.retryIssueRecord),
  listIssues: read<'listIssues'>(issues.listIssues),
  findIssue: read<'findIssue'>(issues.findIssue),
  listIssueOccurrences: read<'listIssueOccurrences'>(issues.listIssueOccurrences),
  listAffectedRuns: read<'listAffectedRuns'>(issueAffected.listAffectedRuns),
  listAffectedAgents: read<'listAffectedAgents'>(issueAffected.listAffectedAgents),
  listIssueActivity: read<'listIssueActivity'>(issueActivity.listIssueActivity),
  changeIssueState: write<'changeIssueState'>(issueChanges.changeIssueState),
  assignIssue: write<'assignIssue'>(issueChanges.assignIssue),
  commentIssue: write<'commentIssue'>(issueChanges.commentIssue),
  mergeIssues: write<'mergeIssues'>(issueGrouping.mergeIssues),
  splitIssue: write<'splitIssue'>(issueGrouping.splitIssue),
  createApproval: write<'createApproval'>(approvals.createApproval),
  decideApprovals: write<'decideApprovals'>(approvals.decideApprovals),
  expireApprovals: write<'expireApprovals'>(approvals.expireApprovals),
  findApproval: look<'findApproval'>(findApproval),
  findApprovals: read<'findApprovals'>(findApprovals),
  listApprovals: read<'listApprovals'>(approvalLists.listApprovals),
  listApprovalsOfRun: read<'listApprovalsOfRun'>(approvalLists.listApprovalsOfRun),
  groupApprovals: read<'groupApprovals'>(approvalLists.groupApprovals),
  countRequests: read<'countRequests'>(approvalLists.countRequests),
  listOverdueEnvironments: read<'listOverdueEnvironments'>(approvalLists.listOverdueEnvironments),
  approvalRevisions: look<'approvalRevisions'>(approvalLists.approvalRevisions),
  listChangedApprovals: read<'listChangedApprovals'>(approvalLists.listChangedApprovals),
  listToolEvents: read<'listToolEvents'>(listToolEvents),
  findRecordedInput: read<'findRecordedInput'>(findRecordedInput),
  createPrompt: write<'createPrompt'>(prompts.createPrompt),
  createPromptVersion: write<'createPromptVersion'>(prompts.createPromptVersion),
  listPrompts: read<'listPrompts'>(prompts.listPrompts),
  findPrompt: read<'findPrompt'>(prompts.findPrompt),
  listPromptVersions: read<'listPromptVersions'>(prompts.listPromptVersions),
  findPromptVersion: read<'findPromptVersion'>(prompts.findPromptVersion),
  createPolicy: write<'createPolicy'>(policies.createPolicy),
  createPolicyVersion: write<'createPolicyVersion'>(policies.createPolicyVersion),
  listPolicies: read<'listPolicies'>(policies.listPolicies),
  findPolicy: read<'findPolicy'>(policies.findPolicy),
  listPolicyVersions: read<'listPolicyVersions'>(policies.listPolicyVersions),
  findPolicyVersion: read<'findPolicyVersion'>(policies.findPolicyVersion),
  publish: write<'publish'>(publish),
  listDeployments: read<'listDeployments'>(deployments.listDeployments),
  listDeploymentChanges: read<'listDeploymentChanges'>(deployments.listDeploymentChanges),
  readConfiguration: read<'readConfiguration'>(readConfiguration),
  createSimulation: write<'createSimulation'>(simulations.createSimulation),
  findSimulation: read<'findSimulation'>(simulations.findSimulation),
  listSimulations: read<'listSimulations'>(simulations.listSimulations),
  cancelSimulation: write<'cancelSimulation'>(simulations.cancelSimulation),
  reportSimulation: write<'reportSimulation'>(simulations.reportSimulation),
  endSimulation: write<'endSimulation'>(simulations.endSimulation),
  countToolCalls: read<'countToolCalls'>(simulations.countToolCalls),
  listToolCalls: read<'listToolCalls'>(simulations.listToolCalls),
  listRunSteps: read<'listRunSteps'>(simulations.listRunSteps),
  createWebhook: write<'createWebhook'>(webhooks.createWebhook),
  listWebhooks: read<'listWebhooks'>(webhooks.listWebhooks),
  findWebhook: read<'findWebhook'>(webhooks.findWebhook),
  changeWebhook: write<'changeWebhook'>(webhooks.changeWebhook),
  removeWebhook: write<'removeWebhook'>(webhooks.removeWebhook),
  sendToWebhook: write<'sendToWebhook'>(deliveries.sendToWebhook),
  listDeliveries: read<'listDeliveries'>(deliveries.listDeliveries),
  redeliver: write<'redeliver'>(deliveries.redeliver),
  startDelivery: read<'startDelivery'>(deliveries.startDelivery),
  recordAttempt: write<'recordAttempt'>(deliveries.recordAttempt),
  claimIdempotencyKey: write<'claimIdempotencyKey'>(idempotency.claimIdempotencyKey),
  keepIdempotentReply: write<'keepIdempotentReply'>(idempotency.keepIdempotentReply),
  releaseIdempotencyKey: write<'releaseIdempotencyKey'>(idempotency.releaseIdempotencyKey),
  deleteOldIdempotencyKeys: write<'deleteOldIdempotencyKeys'>(idempotency.deleteOldIdempotencyKeys),
}

/** One method per act, each passing its name and arguments to `call`. */
export function actMethods(call: (name: ActName, kind: ActKind, args: unknown[]) => Promise<unknown>) {
  const method = (name: ActName) => [name, (...args: unknown[]) => call(name, ACTS[name].kind, args)]
  return Object.fromEntries((Object.keys(ACTS) as ActName[]).map(method)) as unknown as ActMethods
}

/** Runs an act that was named by a message. */
export function runAct(sql: Sql, name: ActName, args: unknown[]): Promise<unknown> {
  const run = ACTS[name].run as (sql: Sql, ...args: unknown[]) => Promise<unknown>
  return run(sql, ...args)
}
