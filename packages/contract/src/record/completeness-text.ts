/** Describes how much of a run arrived, in a sentence. Pure. */
import { number } from '../engine/format.ts'
import type { Completeness } from './completeness.ts'

/** Reasons for which a client drops events. */
const BECAUSE: ReadonlyMap<string, string> = new Map([
  ['queue_full', 'its queue was full'],
  ['refused', 'the service did not accept the request'],
  ['failed', 'it could not record them'],
])

/** `timeText`: formats a time. The text has no full stop, so that it can follow a name. */
export function completenessText(runCompleteness: Completeness, timeText: (iso: string) => string): string {
  const { state, recorded, arrived, unnumbered, recorders } = runCompleteness
  if (state === 'COMPLETE') return `complete: ${number(arrived)} of ${events(recorded)}`
  if (state === 'GAPS') return gapsText(runCompleteness, timeText)
  if (state === 'OPEN') {
    const open = recorders.filter(({ isDone }) => !isDone).length
    const some = `${number(open)} of its ${number(recorders.length)} clients ${open === 1 ? 'has' : 'have'}`
    const who = recorders.length === 1 ? 'its client has' : some
    return `not known yet: ${events(arrived)} arrived, and ${who} not sent the last one`
  }
  if (recorders.length === 0) return 'not known: its client does not number events'
  return unnumbered === 0
    ? 'not known: the numbers of its events contradict each other'
    : `not known: ${number(unnumbered)} of ${events(arrived + unnumbered)} have no number`
}

function gapsText(runCompleteness: Completeness, timeText: (iso: string) => string): string {
  const lost = runCompleteness.recorded - runCompleteness.arrived
  const subject = `${number(lost)} of ${events(runCompleteness.recorded)} ${lost === 1 ? 'is' : 'are'} missing`
  return `${subject}: ${whyMissing(runCompleteness, timeText)}`
}

/** Why events are missing. Call this only if some are. */
export function whyMissing(
  {
    recorded,
    arrived,
    rejected,
    dropped,
    missing,
    drops,
  }: Pick<Completeness, 'recorded' | 'arrived' | 'rejected' | 'dropped' | 'missing' | 'drops'>,
  timeText: (iso: string) => string,
): string {
  const lost = recorded - arrived
  const last = drops
    .map(({ lastAt }) => lastAt)
    .toSorted()
    .at(-1)
  const at = last === undefined ? '' : ` at ${timeText(last)}`
  const reasons = drops.map(({ reason }) => BECAUSE.get(reason) ?? reason.replaceAll('_', ' '))
  const because = reasons.length === 0 ? '' : ` because ${reasons.join(' and ')}`
  const them = lost === 1 ? 'it' : 'them'
  if (dropped === lost) return `the client dropped ${them}${at}${because}`
  if (rejected === lost) return `the service rejected ${them}`
  if (missing === lost) return 'no reason is known'
  const parts = [
    ...(dropped === 0 ? [] : [`the client dropped ${number(dropped)}${at}${because}`]),
    ...(rejected === 0 ? [] : [`the service rejected ${number(rejected)}`]),
    ...(missing === 0 ? [] : [`no reason is known for ${number(missing)}`]),
  ]
  return parts.join(', ')
}

const events = (count: number): string => `${number(count)} ${count === 1 ? 'event' : 'events'}`
