/**
 * At most one search of a workspace runs at a time, and few at once, because they share readers or connections of the
 * store with all other requests. Others wait, up to a bound; their turns go round the workspaces. One whose client has left
 * is passed over.
 */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { Holder } from '../holder.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { Shares } from '../shares.ts'
import { TurnsByWorkspace } from '../turns-by-workspace.ts'

export interface Search<Result> {
  holder: Holder
  /** Whether the client has left. */
  isOver: () => boolean
  run: () => Promise<Result>
}

interface Waiting {
  holder: Holder
  begin: () => void
}

export const TOO_MANY = refuse('overloaded', 'Too many searches of this workspace are waiting')
const LEFT = refuse('overloaded', 'The client has left')
const WAITING = {
  most: 1_000,
  ofWorkspace: LIMITS.searchesWaiting,
  // Leaves room for the other keys and operators of the workspace.
  ofCredential: LIMITS.searchesWaiting / 2,
}

/** Returns a function that runs a search when its turn has come. */
export function createSearchTurns(atOnce: number) {
  const running = new Shares({ most: atOnce, ofWorkspace: 1, ofCredential: 1 })
  const waiting = new Shares(WAITING)
  const queue = new TurnsByWorkspace<Waiting>()

  function beginNext(): void {
    for (;;) {
      const turn = queue.shift(({ holder }) => running.fits(holder, 1))
      if (turn === null) return
      waiting.add(turn.holder, -1)
      running.add(turn.holder, 1)
      turn.begin()
    }
  }

  return async <Result>({ holder, isOver, run }: Search<Result>): Promise<Result | Refusal> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (running.take(holder, 1)) resolve()
    else if (waiting.take(holder, 1)) queue.push({ holder, begin: resolve })
    else return TOO_MANY
    await promise
    try {
      return isOver() ? LEFT : await run()
    } finally {
      running.add(holder, -1)
      beginNext()
    }
  }
}
