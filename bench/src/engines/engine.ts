/** An engine under test: how a benchmark gets stores, and how it reaches one beside or without a server. */
import type { Storage } from '@tacho/server/storage/storage.ts'
import type { Way } from '../bare/postgres.ts'
import type { Location } from '../bare/sql.ts'
import type { Server } from '../server.ts'

export interface Engine extends AsyncDisposable {
  name: 'sqlite' | 'postgres'
  /** An empty store. */
  createStore(name: string): Promise<Store>
  /** The ways in which its driver alone records, by the name of their row. */
  ways: Record<string, Way>
}

export interface Store {
  /** For the driver alone. */
  at: Location
  /** Starts a server on it. The first start creates the environment. */
  start(flags?: readonly string[], options?: { probe?: boolean }): Promise<Server>
  /** Opens it as the server does, while none runs. */
  open(): Promise<Storage>
  /** Bytes on disk, and those that are free for new rows; null: unknown. */
  size(): Promise<{ bytes: number; freeBytes: number | null }>
}
