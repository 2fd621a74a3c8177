/** Statements are sent together, so one may fail only because an earlier one did. The first error is the cause. */
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
