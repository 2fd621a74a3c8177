/** Parts for Node that a client loads at its first call. */
import * as nodeTimers from 'node:timers'
import { isWorkerd } from '../recording/context.ts'
import { metadataOf } from '../recording/metadata.ts'
import { timers } from '../delivery/runtime.ts'
import { createWriting } from '../recording/writing.ts'
import { endWith } from './client-end.ts'
import { deliverNow } from './deliver-now.ts'
import { endWithHost } from './idle-host.ts'

// Use timers from the module, because the globals may already be fake, as with Jest's `fakeTimers: { enableGlobally:
// true }`. Assign the whole module: not every runtime has all timers.
Object.assign(timers, nodeTimers)

const parts = {
  endWith,
  watch: endWithHost,
  createWriting,
  metadataOf,
  deliverNow,
}

export type HostProcess = typeof parts

/** Undefined on platforms that have Node's modules but no process that ends. */
export const host: HostProcess | undefined =
  !isWorkerd && typeof (globalThis as { process?: { on?: unknown } }).process?.on === 'function' ? parts : undefined
