import { after, before } from 'node:test'
import type { Storage } from '../../../src/storage/storage.ts'

interface Opened {
  storage: Storage
  /** Runs a statement with the environment as its parameter, to damage the store. */
  change(text: string, environmentId: string): Promise<void>
  /** Closes the store, and removes its files or database. */
  close(): Promise<void>
}

/** Opens an empty store of one engine. */
export type OpenStorage = () => Promise<Opened>

/** Functions that open stores for the tests of SQL only: the other tests ran on another release of the same engine. */
const onlyForSql = new WeakSet<OpenStorage>()

/** Leaves out the tests of `decidedHere`. */
export function forSqlOnly(open: OpenStorage): OpenStorage {
  onlyForSql.add(open)
  return open
}

/**
 * Options of a slow test of limits or random steps that depend on our own code only. Other tests send the same statements, so
 * the test need not run on each release of the engine.
 */
export function decidedHere(open: OpenStorage): { skip: string | false } {
  return { skip: onlyForSql.has(open) && 'another release of this engine ran it' }
}

const shared = new WeakMap<OpenStorage, ReturnType<OpenStorage>>()

/**
 * One store for all suites of a file, because opening one takes most of a second on PostgreSQL. Each test uses its own
 * environment, which works like a new store. `closeShared` closes it.
 */
export function sharedStorage(open: OpenStorage): () => Storage {
  let storage: Storage | undefined
  before(async () => {
    const opened = shared.get(open) ?? open()
    shared.set(open, opened)
    storage = (await opened).storage
  })
  return () => {
    if (storage === undefined) throw new Error('The store is open while tests run')
    return storage
  }
}

/** Damages the shared store. */
export async function changeShared(open: OpenStorage, text: string, environmentId: string): Promise<void> {
  await (await shared.get(open))?.change(text, environmentId)
}

/** Called after all suites, because a suite does not know whether it runs last. */
export async function closeShared(open: OpenStorage): Promise<void> {
  await (await shared.get(open))?.close()
}

/** A separate store for a suite whose tests see rows of all environments. */
export function ownStorage(open: OpenStorage): () => Storage {
  const own = () => open()
  after(() => closeShared(own))
  return sharedStorage(own)
}
