import { after, before } from 'node:test'
import type { Storage } from '../../../src/storage/storage.ts'

/** Opens an empty store of one engine; `close` also removes its files or database. */
export type OpenStorage = () => Promise<{ storage: Storage; close(): Promise<void> }>

/** One store for the tests of a file. Each test uses its own environment, which works like a new store. */
export function sharedStorage(open: OpenStorage): () => Storage {
  let opened: Awaited<ReturnType<OpenStorage>> | undefined
  before(async () => {
    opened = await open()
  })
  after(() => opened?.close())
  return () => {
    if (opened === undefined) throw new Error('The store is open while tests run')
    return opened.storage
  }
}
