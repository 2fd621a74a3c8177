/** There from a client's first call on. */
import { clearTimeout, setTimeout } from 'node:timers'
import { isWorkerd } from '../context.ts'
import { createDiskCache } from '../configuration/disk-cache.ts'
import { ISSUE_BOUNDS, IssueRecords, type IssueParts } from '../issue-records.ts'
import { endRunsAtEnd } from '../process-end.ts'
import { metadataOf } from '../metadata.ts'
import { timers } from '../runtime.ts'
import type { Sender } from '../sender.ts'
import { spoolEvents, spoolQueue } from '../spool-queue.ts'
import { callCounts } from '../usage-shapes.ts'
import { createWriting } from '../writing.ts'
import { deliverNow, hint, issuesOf } from './deliver-now.ts'
import { endWithHost, isHostOver } from './idle-host.ts'
import { streamed } from './streamed.ts'

/** Elsewhere, issue records are loaded on first use. */
function openIssues(core: IssueParts & { readonly sender: Sender }): IssueRecords {
  const { spool, enabled } = core.settings
  const issues = new IssueRecords(core)
  issuesOf.set(core.sender, issues)
  // A failing spool is reported by the events, which use it too.
  const kept = {
    suffix: '.issues',
    id: 'clientRecordId',
    sender: issues.sender,
    bounds: ISSUE_BOUNDS,
    counts: issues.counts,
  } as const
  if (spool && enabled) issues.opened = spoolQueue(spool, kept, core).catch(() => undefined)
  return issues
}

// Those of the globals may be fake before the import: Jest's `fakeTimers: { enableGlobally: true }`.
Object.assign(timers, { setTimeout, clearTimeout })

const parts = {
  callCounts,
  createDiskCache,
  endRunsAtEnd,
  watch: endWithHost,
  isHostOver,
  spoolEvents,
  createWriting,
  metadataOf,
  deliverNow,
  hint,
  openIssues,
  streamed,
}

export type HostProcess = typeof parts

/** Undefined where no process ends although Node's modules are there. */
export const host: HostProcess | undefined =
  !isWorkerd && typeof (globalThis as { process?: { on?: unknown } }).process?.on === 'function' ? parts : undefined
