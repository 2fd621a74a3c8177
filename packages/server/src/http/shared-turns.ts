/**
 * Turns at work that takes threads, readers or connections which all other requests need too. Few run at once, a share of
 * them of one workspace. Others wait, up to a bound; their turns go round the workspaces. One whose client has left is
 * passed over.
 */
import type { Holder } from './holder.ts'
import { refuse, type Refusal } from './reply-error.ts'
import { Shares, type ShareBounds } from './shares.ts'
import { TurnsByWorkspace } from './turns-by-workspace.ts'

export interface Turn<Result> {
  holder: Holder
  /** Whether the client has left. */
  isOver: () => boolean
  run: () => Promise<Result>
}

interface Waiting {
  holder: Holder
  begin: () => void
}

const LEFT = refuse('overloaded', 'The client has left')

/** Returns a function that runs work when its turn has come, or refuses it with `tooMany`. */
export function createSharedTurns(bounds: { running: ShareBounds; waiting: ShareBounds; tooMany: Refusal }) {
  const running = new Shares(bounds.running)
  const waiting = new Shares(bounds.waiting)
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

  return async <Result>({ holder, isOver, run }: Turn<Result>): Promise<Result | Refusal> => {
    const { promise, resolve } = Promise.withResolvers<void>()
    if (running.take(holder, 1)) resolve()
    else if (waiting.take(holder, 1)) queue.push({ holder, begin: resolve })
    else return bounds.tooMany
    await promise
    try {
      return isOver() ? LEFT : await run()
    } finally {
      running.add(holder, -1)
      beginNext()
    }
  }
}
