/**
 * Statements are sent without waiting for each other, so a caller may await a later one first, which fails only because
 * the transaction has failed. The database answers in order, so the first error is the cause.
 */
import type { EventEmitter } from 'node:events'
import type { ClientBase, DatabaseError } from 'pg'
import { followsFailure } from './errors.ts'

export interface FirstFailure {
  behind(error: unknown): unknown
}

const failures = new WeakMap<ClientBase, FirstFailure>()

export function firstFailure(client: ClientBase): FirstFailure {
  const known = failures.get(client)
  if (known !== undefined) return known
  let first: DatabaseError | null = null
  const { connection } = client as unknown as { connection: EventEmitter }
  connection.on('errorMessage', (error: DatabaseError) => (first ??= error))
  connection.on('readyForQuery', ({ status }: { status: string }) => {
    if (status === 'I') first = null
  })
  const failure: FirstFailure = { behind: (error) => (followsFailure(error) ? (first ?? error) : error) }
  failures.set(client, failure)
  return failure
}
