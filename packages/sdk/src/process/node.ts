/** Parts for Node that a client loads at its first call. */
import * as nodeTimers from 'node:timers'
import { isWorkerd } from '../recording/context.ts'
import { metadataOf } from '../recording/metadata.ts'
import { timers } from '../delivery/runtime.ts'
import { createWriting } from '../recording/writing.ts'
import { endWith } from './client-end.ts'
import { deliverNow } from './deliver-now.ts'
import { endWithHost } from './idle-host.ts'

// Take timers from the module: the globals may be fake before the import, as with Jest's `fakeTimers: { enableGlobally: true }`.
// As a whole, because not every runtime has all of it.
Object.assign(timers, nodeTimers)

const parts = {
  endWith,
  watch: endWithHost,
  createWriting,
  metadataOf,
  deliverNow,
}

export type HostProcess = typeof parts

/** Undefined where no process ends although Node's modules are there. */
export const host: HostProcess | undefined =
  !isWorkerd && typeof (globalThis as { process?: { on?: unknown } }).process?.on === 'function' ? parts : undefined
