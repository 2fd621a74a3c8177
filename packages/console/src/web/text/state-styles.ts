/**
 * The states in the console. Each has one colour, one sign and one word everywhere:
 *   green ✓ as it should be     red ✕ went wrong, ! is wrong now, ● open     accent ● under way
 *   amber ! look at it, ‖ waits, ↩ came back     grey – over, and nothing follows
 * `State` draws them. Pure.
 */
import type { Tone } from '../ui/chip.tsx'

const GOOD = ['green', '✓'] as const
const BAD = ['red', '✕'] as const
const ALARM = ['red', '!'] as const
const CARE = ['amber', '!'] as const
const WAITS = ['amber', '‖'] as const
const BUSY = ['accent', '●'] as const
const OVER = ['plain', '–'] as const

export const STATES = {
  // States of runs.
  RUNNING: [...BUSY, 'Running'],
  WAITING: [...WAITS, 'Waiting'],
  STALLED: [...CARE, 'Stalled'],
  COMPLETED: [...GOOD, 'Completed'],
  FAILED: [...BAD, 'Failed'],
  CANCELLED: [...OVER, 'Cancelled'],
  GAPS: [...CARE, 'Events missing'],
  LOST: [...ALARM, 'Lost'],
  // States of approvals.
  PENDING: [...WAITS, 'Waiting'],
  APPROVED: [...GOOD, 'Approved'],
  REJECTED: [...BAD, 'Rejected'],
  EXPIRED: [...OVER, 'Expired'],
  WITHDRAWN: [...OVER, 'Nobody waits'],
  UNANSWERED: [...OVER, 'Unanswered'],
  BURST: [...CARE, 'asks often'],
  AS_ASKED: [...GOOD, 'As the agent asked'],
  NOT_AS_ASKED: [...BAD, 'Not what the agent asked for'],
  NOT_CHECKABLE: [...CARE, 'Cannot be checked'],
  // Results of approvals.
  RAN: [...GOOD, 'Ran'],
  RAN_BEFORE: [...ALARM, 'Ran before the decision'],
  RAN_ANYWAY: [...ALARM, 'Ran anyway'],
  RAN_AND_FAILED: [...BAD, 'Failed afterwards'],
  ANOTHER_WAY: [...CARE, 'Ran with another input'],
  NOT_RUN: [...OVER, 'Did not run'],
  NOT_KNOWN: ['plain', '?', 'Not known'],
  // States of calls.
  BLOCKED: [...BAD, 'Blocked'],
  NEVER_RAN: [...BAD, 'Never ran'],
  DID_NOT_REPORT: [...CARE, 'Did not report'],
  // Actions of policies, and a high severity.
  ALLOW: [...GOOD, 'Allow'],
  WARN: [...CARE, 'Warn'],
  REQUIRE_APPROVAL: [...WAITS, 'Ask a person'],
  BLOCK: [...BAD, 'Block'],
  SEVERE: [...ALARM, 'Severe'],
  // States of issues.
  OPEN: ['red', '●', 'Open'],
  RESOLVED: [...GOOD, 'Resolved'],
  IGNORED: [...OVER, 'Ignored'],
  CAME_BACK: ['amber', '↩', 'Came back'],
  // States of alerts and budgets.
  OK: [...GOOD, 'OK'],
  NEARLY: ['amber', '…', 'Pending'],
  FIRING: [...ALARM, 'Firing'],
  NOT_CHECKED: [...OVER, 'Not checked yet'],
  // States of deliveries, erasures and settings.
  DELIVERED: [...GOOD, 'Delivered'],
  SEARCHING: [...BUSY, 'Searching'],
  REMOVING: [...BUSY, 'Effective'],
  DONE: [...GOOD, 'Done'],
  CURRENT: [...GOOD, 'Has it'],
  UPDATING: [...BUSY, 'Updating'],
  BEHIND: [...BAD, 'Behind'],
  SILENT: [...CARE, 'Silent'],
  OLDER: [...CARE, 'Older version'],
  // States of keys, people and places.
  ACTIVE: [...GOOD, 'Active'],
  ENDS_SOON: [...CARE, 'Ends soon'],
  REPLACED: [...CARE, 'Replaced'],
  REVOKED: [...OVER, 'Revoked'],
  DISABLED: [...OVER, 'Disabled'],
  SHUT_OFF: [...BAD, 'Disabled by the server'],
  ON: [...GOOD, 'On'],
  OFF: [...OVER, 'Off'],
  DEACTIVATED: [...OVER, 'Deactivated'],
  ARCHIVED: [...OVER, 'Archived'],
  TO_BE_DELETED: [...ALARM, 'To be deleted'],
  DAMAGED: [...BAD, 'Damaged'],
  // States of judgements.
  GOOD: [...GOOD, 'Good'],
  BAD: [...BAD, 'Bad'],
} as const satisfies Record<string, readonly [Tone, string, string]>

export type StateName = keyof typeof STATES

export const stateWord = (is: StateName): string => STATES[is][2]
