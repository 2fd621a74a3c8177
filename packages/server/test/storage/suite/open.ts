import { after, before } from 'node:test'
import type { Storage } from '../../../src/storage/storage.ts'

interface Opened {
  storage: Storage
  /** Runs a statement with the environment as its parameter, to damage the store. */
  change(text: string, environmentId: string): Promise<void>
  /** Also removes its files or database. */
  close(): Promise<void>
}

/** Opens an empty store of one engine. */
export type OpenStorage = () => Promise<Opened>

/** Stores whose other tests ran on another release of the same engine. */
const onlyForSql = new WeakSet<OpenStorage>()

/** Leaves out the tests of `decidedHere`. */
export function forSqlOnly(open: OpenStorage): OpenStorage {
  onlyForSql.add(open)
  return open
}

/**
 * Options of a slow test of a number that our own code compares, or of random steps through it. Other tests send its statements
 * too: no release of the engine answers them differently for it.
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

/** The suites themselves do not know which of them runs last. */
export async function closeShared(open: OpenStorage): Promise<void> {
  await (await shared.get(open))?.close()
}

/** A store for the tests of one suite that see the whole store. */
export function ownStorage(open: OpenStorage): () => Storage {
  const own = () => open()
  after(() => closeShared(own))
  return sharedStorage(own)
}
