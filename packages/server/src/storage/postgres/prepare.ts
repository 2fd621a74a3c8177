/** On a separate connection without timeouts, before the store is served. */
import { setTimeout as wait } from 'node:timers/promises'
import pg, { DatabaseError } from 'pg'
import { StoreRefused } from '../engine/store.ts'
import { parseAddress, type Address } from './address.ts'
import { distribute } from './citus.ts'
import { migrate } from './migrate.ts'

const POLL_MS = 250
const CONNECT_MS = 5_000

export function prepareStore(address: Address, waitMs: number): Promise<string[]> {
  return onConnection(address, waitMs, (client) => migrate(client))
}

export function distributeStore(url: string, waitMs = 10_000): Promise<string[]> {
  return onConnection(parseAddress(url), waitMs, async (client) => {
    await migrate(client)
    return distribute(client)
  })
}

async function onConnection<Result>(
  address: Address,
  waitMs: number,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = await connect(address, performance.now() + waitMs)
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

async function connect({ config, shown }: Address, deadline: number): Promise<pg.Client> {
  for (;;) {
    const client = new pg.Client({ ...config, connectionTimeoutMillis: CONNECT_MS, keepAlive: true })
    client.on('error', () => undefined)
    try {
      return await client.connect()
    } catch (error) {
      const isOver = performance.now() + POLL_MS >= deadline
      if (isOver || !isPassing(error)) throw unusable(shown, error)
      await wait(POLL_MS)
    }
  }
}

const NETWORK_CODES = /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/

/** Waiting may help: the database is starting, stopping, overloaded or not yet reachable. */
function isPassing(error: unknown): boolean {
  if (error instanceof DatabaseError) return /^(57|53)/.test(error.code ?? '')
  const { code = '', message } = error as NodeJS.ErrnoException
  return NETWORK_CODES.test(code) || /^(timeout|Connection terminated)/.test(message)
}

export function unusable(shown: string, error: unknown): StoreRefused {
  const { message, code } = error as NodeJS.ErrnoException
  return new StoreRefused(`The database ${shown} cannot be used: ${message || code}.`)
}
