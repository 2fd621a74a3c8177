import { after, before } from 'node:test'
import type { Storage } from '../../../src/storage/storage.ts'

/** Opens an empty store of one engine; `close` also removes its files or database. */
export type OpenStorage = () => Promise<{ storage: Storage; close(): Promise<void> }>

interface Shared {
  users: number
  opened: ReturnType<OpenStorage> | null
}

const shared = new WeakMap<OpenStorage, Shared>()

/**
 * One store for all suites of a file, because opening one takes most of a second on PostgreSQL. Each test uses its own
 * environment, which works like a new store.
 */
export function sharedStorage(open: OpenStorage): () => Storage {
  const known = shared.get(open) ?? { users: 0, opened: null }
  shared.set(open, known)
  // All suites are declared before the first one runs. The last one closes the store.
  known.users++
  let storage: Storage | undefined
  before(async () => {
    storage = (await (known.opened ??= open())).storage
  })
  after(async () => {
    if (--known.users === 0) await (await known.opened)?.close()
  })
  return () => {
    if (storage === undefined) throw new Error('The store is open while tests run')
    return storage
  }
}

/** A store for the tests of one suite that see the whole store. */
export function ownStorage(open: OpenStorage): () => Storage {
  return sharedStorage(() => open())
}
