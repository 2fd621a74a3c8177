/** Texts about a request: the same sentences in the CLI, the console, messages and for models. */
import { duration } from '../engine/format.ts'
import { printable } from '../engine/shown-text.ts'
import type { InputCheck, RanBefore, Waiting } from './operator-approval.ts'
import type { RanStatus, WithdrawnReason } from '../engine/words.ts'

const CANNOT: Record<NonNullable<InputCheck['reason']>, string> = {
  masked: 'parts of it are masked',
  shortened: 'the client shortened it',
  other_scheme: 'the client computes its hash in another way',
  not_recorded: 'the client recorded no input',
}

export function inputCheckText({ result, reason, sealed, sealedAt }: InputCheck): string {
  if (result === 'does_not_match')
    return 'DOES NOT MATCH what the agent asked for: the call would run with another input'
  if (result === 'cannot_be_checked') return `cannot be checked: ${reason === null ? 'unknown' : CANNOT[reason]}`
  if (sealed === 0) return 'matches what the agent asked for'
  return `matches what the agent asked for, with ${sealed} masked ${sealed === 1 ? 'value' : 'values'}${sealedText(sealed, sealedAt)}`
}

/** `: /card/number, /to and 3 more`. The pointer of the whole input has no name. */
function sealedText(sealed: number, sealedAt: readonly string[] = []): string {
  const named = sealedAt
    .slice(0, SEALED_NAMED)
    .map((pointer) => printable(pointer === '' ? 'the whole input' : pointer))
  const others = sealed - named.length
  return named.length === 0 ? '' : `: ${named.join(', ')}${others === 0 ? '' : ` and ${others} more`}`
}

const SEALED_NAMED = 5

const WHY: Record<WithdrawnReason, string> = {
  timeout: 'the caller did not wait longer',
  cancelled: 'the call was cancelled',
  aborted: 'the call was aborted',
  run_ended: 'the run ended',
  process_ended: 'the process ended',
}

export function withdrawnText(reason: WithdrawnReason | null): string {
  return `${reason === null ? 'the call is gone' : WHY[reason]}; nothing will run`
}

/** What a person must know about a waiting caller; null: nothing. */
export function waitingText({ state, lastSeenAt, reason }: Waiting, now: number): string | null {
  if (state === 'withdrawn') return `withdrawn: ${withdrawnText(reason)}`
  if (state !== 'stopped' || lastSeenAt === null) return null
  return `the agent stopped waiting ${ago(lastSeenAt, now)}`
}

const ENDS: Record<RanStatus, string> = {
  started: 'and has not ended',
  returned: 'and returned',
  failed: 'and failed',
  cancelled: 'and was cancelled',
  did_not_report: 'and did not report back',
}

export function ranBeforeText({ approvalId, at, status }: RanBefore, now: number): string {
  return `this very call ran ${ago(at, now)} under approval ${approvalId}, ${ENDS[status]}`
}

/** The first approval of a request that needs two. */
export function firstApprovalText({ name, reason }: { name: string; reason: string | null }): string {
  return `by ${name}${reason === null || reason === '' ? '' : `: ${reason}`}. Another person must approve it too`
}

const ago = (time: string, now: number): string => `${duration(Math.max(0, now - Date.parse(time)))} ago`
