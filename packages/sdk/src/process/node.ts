/** What a client needs of its process, there from its first call on. */
import { clearTimeout, setTimeout } from 'node:timers'
import { createDiskCache } from '../configuration/disk-cache.ts'
import { IssueRecords, type IssueParts } from '../issue-records.ts'
import { endRunsAtEnd } from '../process-end.ts'
import { timers } from '../runtime.ts'
import type { Sender } from '../sender.ts'
import { spoolEvents } from '../spool-events.ts'
import { openSpool } from '../spool.ts'
import { createWriting } from '../writing.ts'
import { deliverNow, issuesOf } from './deliver-now.ts'
import { streamed } from './streamed.ts'

/** Elsewhere, issue records are loaded on first use. */
function openIssues(core: IssueParts & { readonly sender: Sender }): IssueRecords {
  const { spool, enabled } = core.settings
  const issues = new IssueRecords(core)
  issuesOf.set(core.sender, issues)
  // A failing spool is reported by the events, which use it too.
  if (spool && enabled) issues.opened = openSpool(spool, issues.spoolUser, core).catch(() => undefined)
  return issues
}

// Those of the globals may be fake before the import: Jest's `fakeTimers: { enableGlobally: true }`.
Object.assign(timers, { setTimeout, clearTimeout })

const parts = { createDiskCache, endRunsAtEnd, spoolEvents, createWriting, deliverNow, openIssues, streamed }

export type HostProcess = typeof parts

/** Undefined where `process` is missing although Node's modules are there. */
export const host: HostProcess | undefined =
  typeof (globalThis as { process?: { on?: unknown } }).process?.on === 'function' ? parts : undefined
