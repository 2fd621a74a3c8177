/** An engine under test: creates stores, and reaches a store beside a server or without one. */
import type { Storage } from '@tacho/server/storage/storage.ts'
import type { Way } from '../bare/postgres.ts'
import type { Location } from '../bare/sql.ts'
import type { Server } from '../server.ts'

export interface Engine extends AsyncDisposable {
  name: 'sqlite' | 'postgres'
  /** Creates an empty store. */
  createStore(name: string): Promise<Store>
  /** How its driver alone can record, by the name of the row. */
  ways: Record<string, Way>
}

export interface Store {
  /** The place of the store, for the driver alone. */
  at: Location
  /** Starts a server on the store. The first start creates the environment. */
  start(flags?: readonly string[], options?: { probe?: boolean }): Promise<Server>
  /** Opens the store as the server does, while no server runs. */
  open(): Promise<Storage>
  /** Bytes on disk, and bytes that are free for new rows; null: unknown. */
  size(): Promise<{ bytes: number; freeBytes: number | null }>
}
