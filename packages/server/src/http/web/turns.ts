/**
 * Spreads work of a millisecond or more, so that a small request does not wait for earlier batches. Workspaces take
 * turns: a request waits for one turn of each other workspace, however many requests that workspace has.
 */
import type { FastifyReply } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { type Holder, TurnsByWorkspace } from '../../storage/engine/turns-by-workspace.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { LEFT, refuse, type Refusal } from './reply-error.ts'
import { Shares, type ShareBounds } from '../../domain/tenants/shares.ts'

interface WaitingPiece {
  holder: Holder
  begin: () => void
}

/** Holder of work that belongs to no request. */
const NOBODY: Holder = { workspace: '', credential: '' }

const waiting = new TurnsByWorkspace<WaitingPiece>()

export function waitForTurn(holder: Holder = NOBODY): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  waiting.push({ holder, begin: resolve })
  if (waiting.size === 1) setImmediate(next)
  return promise
}

function next(): void {
  waiting.shift(() => true)?.begin()
  if (waiting.size > 0) setImmediate(next)
}

export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  to: (item: Item) => Result,
): Promise<Result[]> {
  const results: Result[] = []
  for (let at = 0; at < items.length; at += atOnce) {
    if (at > 0) await waitForTurn()
    results.push(...items.slice(at, at + atOnce).map(to))
  }
  return results
}

/** Yields pieces in separate turns: a consumer that reads everything at once would otherwise get all in one turn. */
export async function* inTurns<Piece>(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece> {
  for await (const piece of pieces) {
    yield piece
    await waitForTurn()
  }
}

export interface Turn<Result> {
  holder: Holder
  isOver: () => boolean
  run: (away: Away) => Promise<Result>
}

/** Releases the turn during `wait`, and then waits for another one. */
type Away = <Result>(wait: () => Promise<Result>) => Promise<Result>

interface WaitingCall {
  holder: Holder
  begin: () => void
}

export function createSharedTurns(bounds: { running: ShareBounds; waiting: ShareBounds; tooMany: Refusal }) {
  const running = new Shares(bounds.running)
  const underWay = new Shares(sumOf(bounds.running, bounds.waiting))
  const queue = new TurnsByWorkspace<WaitingCall>()

  function beginNext(): void {
    for (;;) {
      const turn = queue.shift(({ holder }) => running.fits(holder, 1))
      if (turn === null) return
      running.add(turn.holder, 1)
      turn.begin()
    }
  }

  async function begin(holder: Holder): Promise<void> {
    if (running.take(holder, 1)) return
    const { promise, resolve } = Promise.withResolvers<void>()
    queue.push({ holder, begin: resolve })
    await promise
  }

  function end(holder: Holder): void {
    running.add(holder, -1)
    beginNext()
  }

  return async <Result>({ holder, isOver, run }: Turn<Result>): Promise<Result> => {
    const away: Away = async (wait) => {
      end(holder)
      try {
        return await wait()
      } finally {
        await begin(holder)
      }
    }
    if (!underWay.take(holder, 1)) throw bounds.tooMany
    try {
      await begin(holder)
      try {
        if (isOver()) throw LEFT
        return await run(away)
      } finally {
        end(holder)
      }
    } finally {
      underWay.add(holder, -1)
    }
  }
}

export function createTurnsOfWorkspaces(atOnce: number, what: string) {
  const [most, ofWorkspace] = [5 * LIMITS.turnsWaiting, LIMITS.turnsWaiting]
  const takeTurn = createSharedTurns({
    running: { most: atOnce, ofWorkspace: 1, ofCredential: 1 },
    waiting: { most, ofWorkspace, ofCredential: ofWorkspace / 2 },
    tooMany: refuse('overloaded', `Too many ${what} of this workspace are waiting`),
  })
  return <Result>(reply: FastifyReply, run: Turn<Result>['run']): Promise<Result> =>
    takeTurn({ holder: holderOf(reply.request), isOver: () => reply.raw.destroyed, run })
}

const sumOf = (one: ShareBounds, other: ShareBounds): ShareBounds => ({
  most: one.most + other.most,
  ofWorkspace: one.ofWorkspace + other.ofWorkspace,
  ofCredential: one.ofCredential + other.ofCredential,
})

export async function within<Value, Late>(promise: Promise<Value>, ms: number, late: Late): Promise<Value | Late> {
  const { promise: timeUp, resolve } = Promise.withResolvers<Late>()
  const timer = setTimeout(resolve, ms, late)
  const value = await Promise.race([promise, timeUp])
  clearTimeout(timer)
  return value
}
