/** Words and patterns of fields, without the schema library, so that commands start quickly. */
import { LIMITS } from './limits.ts'

/** Whether all events of a run arrived. */
export const COMPLETENESS_STATES = ['COMPLETE', 'GAPS', 'OPEN', 'UNKNOWN'] as const

/** Final statuses of a run. */
export const RUN_OUTCOMES = ['COMPLETED', 'FAILED', 'CANCELLED'] as const

export const RECORD_KINDS = ['DETECTION', 'RECOVERY'] as const

/** Origin of an issue record: a client reported it, or the service detected the failure in an event. */
export const RECORD_ORIGINS = ['CLIENT', 'SERVICE'] as const

export const RECORD_STATUSES = ['RECEIVED', 'EVALUATING', 'DECIDED', 'FAILED'] as const

export const ISSUE_STATES = ['OPEN', 'RESOLVED', 'IGNORED'] as const

export const APPROVAL_STATUSES = ['PENDING', 'APPROVED', 'REJECTED', 'EXPIRED'] as const

/** Whether a client waits for the answer to a request. */
export const WAITING_STATES = ['waiting', 'stopped', 'withdrawn', 'unknown'] as const
/** Reason for which a client withdrew a request: the call that waited for it has ended. */
export const WITHDRAWN_REASONS = ['timeout', 'cancelled', 'aborted', 'run_ended', 'process_ended'] as const
export type WithdrawnReason = (typeof WITHDRAWN_REASONS)[number]
/** Outcomes of a call that ran under an approval. */
export const RAN_STATUSES = ['started', 'returned', 'failed', 'cancelled', 'did_not_report'] as const
export type RanStatus = (typeof RAN_STATUSES)[number]

/** In ascending order. */
export const SEVERITIES = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'] as const

/** Why a person should look at an event of a run. */
export const PROBLEM_KINDS = ['error', 'blocked', 'approval'] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

/** Effects of a policy on a matching tool call, from least to most strict. */
export const POLICY_ACTIONS = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'] as const

/** Effect of a policy on a call when its condition cannot be evaluated: as if the condition were true, or false. */
export const ON_ERRORS = ['act', 'ignore'] as const
export type OnError = (typeof ON_ERRORS)[number]

/** Whether the person who decides may also allow later calls. */
export const GRANT_RULES = ['allow', 'never'] as const
export type GrantRule = (typeof GRANT_RULES)[number]

/** Scopes of a grant: `input` and `tool` in one run, `condition` for an agent. */
export const GRANT_SCOPES = ['input', 'tool', 'condition'] as const
export type GrantScope = (typeof GRANT_SCOPES)[number]

/**
 * The default of `onError`. A policy that holds calls back also applies if its condition fails; for others, the
 * severity decides, as before `onError` existed.
 */
export function defaultOnError({ action, severity }: { action: string; severity: string }): OnError {
  const holdsUp = action !== 'ALLOW' && action !== 'WARN'
  return holdsUp || (severity !== 'LOW' && severity !== 'MEDIUM') ? 'act' : 'ignore'
}

/**
 * Roles of an operator or token in a workspace. Each role includes the roles before it. A viewer reads everything in the
 * workspace. An approver also decides approvals, stops and resumes agents, triages issues, saves views of runs and pins runs. An
 * admin also changes environments, keys, prompts, policies, deployments, webhooks, alerts, prices, search and retention, exports
 * and erases. An owner also manages operators and tokens, imports exports, and renames the workspace.
 */
export const ROLES = ['viewer', 'approver', 'admin', 'owner'] as const

export function includesRole(role: (typeof ROLES)[number], needed: (typeof ROLES)[number]): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(needed)
}

/** The environment of `tacho demo`. Programs use it only if a person names it, or if there is no other. */
export const DEMO_ENVIRONMENT = 'tacho-demo'

export const DEPLOYABLE_KINDS = ['prompt', 'policy'] as const

/** Columns of the list of runs, in the order of the list. */
export const RUN_COLUMNS = [
  'status',
  'run',
  'agent',
  'session',
  'started',
  'length',
  'steps',
  'why',
  'errors',
  'tools',
  'models',
  'tokens',
  'cost',
  'scores',
] as const

/** Events that can trigger a webhook. */
export const WEBHOOK_EVENTS = [
  'approval.requested',
  'approval.decided',
  'approval.expired',
  'approval.withdrawn',
  'issue.opened',
  'issue.regressed',
  'alert.firing',
  'alert.resolved',
  'budget.reached',
  'run.failed',
  'run.incomplete',
] as const

/** `standard`: signed JSON (Standard Webhooks). The others are messages for that service. */
export const WEBHOOK_FORMATS = ['standard', 'slack', 'teams', 'pagerduty', 'mail'] as const
/** Formats of messages for people, which may show the beginning of an input. */
export const INPUT_FORMATS: readonly string[] = ['slack', 'teams', 'mail']

/** Kinds of browser notifications. */
export const NOTIFICATION_KINDS = ['approvals', 'alerts', 'issues'] as const

/** Events that notify people. */
export const NOTIFICATION_EVENTS = [
  'approval.requested',
  'alert.firing',
  'budget.reached',
  'issue.opened',
  'issue.regressed',
] as const satisfies readonly (typeof WEBHOOK_EVENTS)[number][]

export const DELIVERY_STATUSES = ['PENDING', 'DELIVERED', 'FAILED'] as const

export const RUN_STATUSES = ['RUNNING', ...RUN_OUTCOMES] as const
/** Orders of the list of runs. */
export const RUN_SORTS = ['newest', 'cost', 'length', 'tokens', 'failures'] as const
export type RunSort = (typeof RUN_SORTS)[number]

/** Lower case only, so no two ids differ only by case. Ids also appear in addresses and file names. */
export const POLICY_ID_PATTERN = `^[a-z0-9][a-z0-9._-]{0,${LIMITS.policyIdChars - 1}}$`

/** `1` for the first version of a prompt or policy, then `2`, … */
export const VERSION_PATTERN = '^[1-9][0-9]{0,8}$'

/** How current a client's copy of the environment's runtime configuration is. */
export const CLIENT_STANDINGS = ['CURRENT', 'UPDATING', 'BEHIND', 'SILENT'] as const

/** Targets of `tacho stop`, from wide to narrow. */
export const STOP_SCOPES = ['environment', 'agent', 'session', 'run'] as const

/** No white space, and no characters that a condition or a list would have to escape. */
export const TOOL_LABEL_PATTERN = '^[a-z][a-z0-9_-]*$'

/** Providers with other prices for long contexts apply them above one of these numbers of input tokens. */
export const LONG_CONTEXTS = [128_000, 199_999, 200_000, 271_999, 272_000, 512_000] as const

/** Kinds of data that an erasure can name. */
export const ERASURE_KINDS = ['run', 'session', 'agent', 'client', 'user'] as const

export const ERASURE_STATUSES = ['SEARCHING', 'REMOVING', 'DONE'] as const

/** Values that an alert measures. */
export const ALERT_KINDS = [
  'error_rate',
  'cost',
  'no_runs',
  'approval_waiting',
  'stalled_runs',
  'incomplete_runs',
  'share_failures',
  'budget',
] as const

/** PENDING: its condition is true, but not yet for long enough. */
export const ALERT_STATUSES = ['OK', 'PENDING', 'FIRING'] as const

/** Kinds of steps in which a run can fail. */
export const FAILURE_PLACES = ['tool', 'model', 'step', 'run'] as const

export const RUN_ACTIVITIES = ['ACTIVE', 'WAITING_FOR_APPROVAL', 'STALLED'] as const
export type RunActivity = (typeof RUN_ACTIVITIES)[number]

/**
 * Display names of event types. Any text is a type; one that is missing here is shown unchanged. The compiler names the
 * console's colours and shown fields, and a test the type and the page of the SDK. Nothing names the others: PAYLOADS in
 * `record/payload.ts`; `step-line.ts` of the CLI; `event-content.tsx` and `notes.ts` of the console; and what
 * metadata-only keeps, in `metadata.ts` and `payload.py` of the SDKs.
 */
const KNOWN_TYPES = {
  USER_INPUT: 'User',
  AGENT_STEP: 'Step',
  LLM_CALL: 'Model',
  TOOL_START: 'Tool start',
  TOOL_CALL: 'Tool',
  POLICY_DECISION: 'Policy',
  APPROVAL_WITHDRAWN: 'Gave up',
  HANDOFF: 'Hand-off',
  WAITING: 'Waiting',
  ERROR: 'Error',
  SESSION_OUTCOME: 'Outcome',
  SCORE: 'Score',
} as const
export type KnownEventType = keyof typeof KNOWN_TYPES
export const EVENT_TYPE_WORDS: ReadonlyMap<string, string> = new Map(Object.entries(KNOWN_TYPES))

/** Kinds of values of a score. */
export const SCORE_KINDS = ['NUMBER', 'BOOLEAN', 'CATEGORY'] as const
export type ScoreKind = (typeof SCORE_KINDS)[number]

/** Filters separate a name from its value by < > =, and trim names. */
export const SCORE_NAME_PATTERN = '^[^<>=\\s](?:[^<>=\\x00-\\x1f]*[^<>=\\s])?$'

/**
 * With the value `true`, a batch may have events older than 30 days, because they come from another system. Lower case,
 * as in Node.
 */
export const IMPORT_HEADER = 'x-tacho-import'

/** A client sends this once, with a batch, after its spool became full or began to fail. */
export const SPOOL_HEADER = 'x-tacho-spool'
export const SPOOL_TROUBLES = ['full', 'failed'] as const
export type SpoolTrouble = (typeof SPOOL_TROUBLES)[number]

/** With the value `true`, this is the client's last request for the configuration, because the client ends. */
export const CLOSING_HEADER = 'x-tacho-closing'

/** Seconds that a client may wait for a change of the configuration (`wait`). If absent, clients poll at intervals. */
export const WAIT_HEADER = 'x-tacho-wait'

/** Results of a closed request. The first one that is true counts. */
export const HINDSIGHTS = {
  ran_before: 'It ran before a person decided',
  ran_anyway: 'It ran although it was rejected or had expired',
  failed: 'It was approved, ran and failed',
  ran: 'It was approved and ran',
  another_way: 'It did not run, but the same tool ran later with another input',
  not_run: 'It did not run',
  not_known: 'Its run is not recorded, or too long to be read',
} as const satisfies Record<string, string>
export type Hindsight = keyof typeof HINDSIGHTS

/** The policy sets in examples/policies, with the purpose of each. */
export const POLICY_SETS = {
  trifecta: 'private data does not leave after untrusted text was read',
  'named-accounts': 'payments go only to accounts that the user named or that are ours',
  'no-destruction-after-reading': 'nothing is deleted after untrusted text was read, without a person',
  'coding-agents': 'secrets, settings, forced pushes, publishing and requests of coding agents',
  'coding-agents-past': 'coding agents: no network after secrets, no push after untrusted text, no rm -r',
} as const

/** The message of a stopped call for the model, the record and the caller. */
export function stopMessage({ stoppedBy, reason }: { stoppedBy: string; reason: string }): string {
  // No colon after the name: masks treat the text after `token:` as a secret, and an operator token's name may end so.
  return `Stopped by ${stoppedBy}. Reason: ${reason}`
}

/** Policy ids have no colon, so this prefix is unique. */
export const STOP_POLICY = 'stop:'

/** Clients of every version must evaluate the condition, so it uses only variables that the first version has. */
export function stopPolicy(stop: { id: string; stoppedBy: string; reason: string }, condition: string) {
  const message = stopMessage(stop)
  const name = Array.from(message.replace(/\s+/g, ' ')).slice(0, LIMITS.nameChars).join('')
  return {
    policyId: `${STOP_POLICY}${stop.id}`,
    name,
    description: `Message: ${message}`,
    version: '1',
    condition,
    severity: 'CRITICAL',
    action: 'BLOCK',
    onError: 'act',
  } as const
}
