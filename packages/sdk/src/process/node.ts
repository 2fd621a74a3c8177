/** What a client needs of its process, there from its first call on. */
import { endRunsAtEnd } from '../process-end.ts'
import { spoolEvents } from '../spool-events.ts'
import { deliverNow } from './deliver-now.ts'

const parts = { endRunsAtEnd, spoolEvents, deliverNow }

export type HostProcess = typeof parts

/** Undefined where `process` is missing although Node's modules are there. */
export const host: HostProcess | undefined =
  typeof (globalThis as { process?: { on?: unknown } }).process?.on === 'function' ? parts : undefined
