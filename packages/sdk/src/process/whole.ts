/** Parts of Tacho that a client loads at its first call, where node.ts exists. A Recorder does not need them. */
import { createDiskCache } from '../configuration/disk-cache.ts'
import { ISSUE_BOUNDS, IssueRecords, receiptOf, type IssueParts } from '../delivery/issue-records.ts'
import type { Sender } from '../delivery/sender.ts'
import { spoolEvents, spoolQueue } from '../delivery/spool-queue.ts'
import { createRememberingWriting } from '../recording/texts.ts'
import { callCounts } from '../recording/usage-shapes.ts'
import { besideOf } from './deliver-now.ts'
import { host } from './node.ts'
import { streamed } from './streamed.ts'

/** Loads issue records at once. On other platforms, they are loaded on first use. */
function openIssues(core: IssueParts & { readonly sender: Sender }): IssueRecords {
  const { spool, enabled } = core.settings
  const issues = new IssueRecords(core)
  besideOf.set(core.sender, { from: issues.sender, path: '/issue-records', verdict: receiptOf })
  // Ignore a failing spool here: the events, which use it too, report it.
  const keptWhole = {
    suffix: '.issues',
    id: 'clientRecordId',
    sender: issues.sender,
    bounds: ISSUE_BOUNDS,
    counts: issues.counts,
  } as const
  if (spool && enabled) issues.opened = spoolQueue(spool, keptWhole, core).catch(() => undefined)
  return issues
}

const parts = {
  callCounts,
  createDiskCache,
  createWriting: createRememberingWriting,
  openIssues,
  spoolEvents,
  streamed,
}

export type Whole = typeof parts

export const whole: Whole | undefined = host && parts
