/**
 * Queries that each act makes stale, by the first words of their keys. The cache reads them again when the mutation
 * ends, even after a refusal: earlier calls of it may be stored, or another person may have acted first. Loaded with
 * the first act.
 */
import type { OperatorRoutes } from '@tacho/client/operator.ts'

type Act = {
  [Name in keyof OperatorRoutes]: OperatorRoutes[Name]['method'] extends 'GET' ? never : Name
}[keyof OperatorRoutes]

/** For each kind of query, the acts that make it stale. A decision is handled elsewhere: approvals/decision.ts. */
export const STALE: Readonly<Record<string, readonly Act[]>> = {
  policies: ['createPolicy', 'createPolicyVersion', 'archivePolicy', 'restorePolicy'],
  prompts: ['createPrompt', 'createPromptVersion', 'renamePrompt', 'archivePrompt', 'restorePrompt'],
  deployments: ['deploy', 'promote', 'rollBack'],
  'tool labels': ['changeToolLabels'],
  stops: ['stop', 'resume'],
  // A standing approval ends with the policy version under which it was given.
  approvals: ['stop', 'deploy', 'promote', 'rollBack', 'revokeApprovalGrant'],
  issues: ['commentIssue', 'resolveIssue', 'ignoreIssue', 'reopenIssue', 'assignIssue', 'mergeIssue', 'splitIssue'],
  retention: ['changeRetention', 'inheritRetention', 'changeWorkspaceRetention'],
  'api keys': ['createApiKey', 'changeApiKey', 'rotateApiKey', 'revokeApiKey'],
  environments: [
    'createEnvironment',
    'renameEnvironment',
    'archiveEnvironment',
    'restoreEnvironment',
    'deleteEnvironment',
  ],
  workspaces: ['createWorkspace', 'renameWorkspace', 'archiveWorkspace', 'restoreWorkspace'],
  webhooks: ['createWebhook', 'changeWebhook', 'rotateWebhookSecret', 'removeWebhook'],
  deliveries: ['testWebhook', 'redeliver'],
  'slack-links': ['removeSlackLink', 'changeWebhook'],
  'own slack-links': ['removeOwnSlackLink', 'confirmSlackLink'],
  alerts: ['createAlert', 'changeAlert', 'removeAlert'],
  notifications: ['changeNotificationSettings', 'addNotifiedBrowser', 'removeNotifiedBrowser'],
  people: ['changeRole', 'removeOperator', 'invite', 'revokeInvitation'],
  everybody: ['changeInstallationRole', 'deleteOperator', 'inviteEverywhere', 'revokeInstallationInvitation'],
  tokens: [
    'createToken',
    'rotateToken',
    'revokeToken',
    'createInstallationToken',
    'rotateInstallationToken',
    'revokeInstallationToken',
  ],
  sessions: ['endSession', 'changePassword'],
  me: ['addSecondFactor', 'confirmSecondFactor', 'removeSecondFactor'],
  run: ['pinRun', 'unpinRun', 'giveScore', 'withdrawScore'],
  scores: ['giveScore', 'withdrawScore'],
  judges: ['giveScore', 'withdrawScore'],
  'score names': ['giveScore', 'withdrawScore'],
  agents: ['renameAgent', 'archiveAgent', 'restoreAgent'],
  runs: ['renameAgent', 'archiveAgent', 'restoreAgent'],
  'run views': ['createRunView', 'changeRunView', 'removeRunView'],
  'search settings': ['switchSearch'],
}
/** Acts that make everything stale: a price affects every estimate, and the rule of stalled runs every list of runs. */
export const MAKE_ALL_STALE: ReadonlySet<string> = new Set<Act>(['setPrice', 'removePrice', 'changeStalledRule'])

/** Returns a function that checks a query's key. */
export function isStaleAfter(acts: readonly string[]): (key: readonly unknown[]) => boolean {
  if (acts.some((act) => MAKE_ALL_STALE.has(act))) return () => true
  const words = new Set<unknown>(Object.keys(STALE).filter((word) => STALE[word]?.some((act) => acts.includes(act))))
  return ([word]) => words.has(word)
}
