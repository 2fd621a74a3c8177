import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FastifyReply } from 'fastify'
import { holderOf } from '../tenants/holder.ts'
import { LEFT, refuse, type Refusal } from './reply-error.ts'
import { Shares, type ShareBounds } from '../../domain/tenants/shares.ts'
import type { Holder } from '../../storage/engine/turns-by-workspace.ts'
import { TurnsByWorkspace } from '../../storage/engine/turns-by-workspace.ts'

export interface Turn<Result> {
  holder: Holder
  isOver: () => boolean
  run: (away: Away) => Promise<Result>
}

/** Gives the turn up during `wait`, and waits for another one after it. */
export type Away = <Result>(wait: () => Promise<Result>) => Promise<Result>

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
