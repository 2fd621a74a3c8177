/**
 * The calls of a run that are under way. They delay the run's end: after its function returned, a framework may still
 * call a model in the background.
 *
 *   returned --nothing is under way, or a stream that was read before is read no further--> ended
 *     \--a call has no answer yet, or its stream is read on--> late --all have ended, and none followed--> ended
 *                                                                \--nobody reads on--> aborted, ended
 */
import type { RunScope } from '../recording/context.ts'
import { sharedIn } from '../border.ts'
import type { Background, Core, Endable, EndLate } from '../core.ts'

export interface UnderWay {
  /** Whether the framework waits for the answer, or for its next piece. */
  readonly isWaiting: boolean
  readonly hasPieces: boolean
  /** When the call began, or its last piece arrived. */
  readonly touchedAt: number
}

/** Longest pause of a slow reader, such as a browser. */
export const IDLE_MS = 30_000
/** Longest pause of a model, or wait of a client for its answer. */
export const SILENT_MS = 600_000
const LEFT_MS = 1_000
const LOOK_MS = 50
const KNOWN_MS = 5
/** An agent without a step for this long has ended. */
const STEP_MS = 100
const TOOL_STEP_MS = 2_000

interface Calls {
  readonly open: Set<UnderWay>
  endedAt: number
  /** Whether the last answer asked for tools. */
  goesOn: boolean
  isAborted: boolean
  /** Whether the call's run returned before the call ended. */
  isLate: boolean
}

interface Quiet {
  readonly isAborted: boolean
  /** When the last call ended in the background. */
  readonly at?: number
}

export function openCallsOf(core: Core): OpenCalls {
  return (core.background ??= sharedIn(core, 'open-calls', () => new OpenCalls(core))) as OpenCalls
}

export class OpenCalls implements Background {
  readonly #core: Core
  readonly #calls = new WeakMap<RunScope, Calls>()
  /** Calls of returned runs, until nothing is under way. */
  readonly #returning = new Set<Calls>()

  constructor(core: Core) {
    this.#core = core
  }

  began(scope: RunScope, call: UnderWay): void {
    this.#in(scope).open.add(call)
  }

  ended(scope: RunScope, call: UnderWay, end: Pick<Calls, 'goesOn' | 'isAborted'>): void {
    const calls = this.#in(scope)
    calls.open.delete(call)
    Object.assign(calls, { ...end, endedAt: this.#core.runtime.now() })
  }

  /** Notes a tool that runs between two model calls. */
  tool(scope: RunScope, result: unknown): void {
    const { now } = this.#core.runtime
    const calls = this.#in(scope)
    const call = { isWaiting: true, hasPieces: false, touchedAt: now() }
    const returned = () => {
      calls.open.delete(call)
      calls.endedAt = now()
    }
    calls.open.add(call)
    Promise.resolve(result)
      .then(returned, returned)
      .catch(() => undefined)
  }

  async untilKnown(timeoutMs: number): Promise<void> {
    const { now, timer } = this.#core.runtime
    const isKnown = ({ isLate, open }: Calls) =>
      open.size > 0 && (isLate || [...open].some((call) => call.isWaiting && !call.hasPieces))
    const timeUp = now() + timeoutMs
    while (now() < timeUp && [...this.#returning].some((calls) => !isKnown(calls))) {
      await new Promise<void>((resolve) => timer(KNOWN_MS, resolve, true))
    }
  }

  endWhenQuiet(
    run: Endable,
    scope: RunScope,
    result: unknown,
    isAwaited: boolean,
    end: EndLate,
  ): Promise<unknown> | undefined {
    const { leavers, openRuns } = this.#core
    const { open } = this.#in(scope)
    // The run returned, so nobody waits for the person's answer in it.
    if (open.size === 0 && [...leavers].some((leaver) => leaver.scope === scope)) return undefined
    // The run continues after this, so the end of the process must not fail it.
    openRuns.delete(run)
    const left = { leave: (reason: string) => void (reason === 'process_ended' && end(undefined, open.size > 0)) }
    leavers.add(left)
    return new Promise<void>((goOn) => {
      // A host may need its result before the background calls can end.
      const onLate = () => void (result !== undefined && goOn())
      const ended = this.#untilQuiet(scope, onLate).then(({ isAborted, at }) => {
        leavers.delete(left)
        return end(undefined, isAborted, at)
      })
      if (isAwaited) void ended.then(() => goOn())
      else goOn()
    })
  }

  #untilQuiet(scope: RunScope, onLate: () => void): Promise<Quiet> {
    const { runtime } = this.#core
    const returnedAt = runtime.now()
    const calls = this.#in(scope)
    const { open } = calls
    this.#returning.add(calls)
    return new Promise((resolve) => {
      const closeEnded = (): void => {
        const now = runtime.now()
        const since = ({ touchedAt }: UnderWay) => now - touchedAt
        const waiting = [...open].filter((call) => call.isWaiting && since(call) < SILENT_MS)
        // A framework may read ahead a stream that its host left.
        const isRead = waiting.some((call) => !call.hasPieces || since(call) < LEFT_MS)
        calls.isLate ||= waiting.some((call) => !call.hasPieces) || (isRead && now - returnedAt >= LEFT_MS)
        const { isLate, endedAt, goesOn, isAborted } = calls
        if (isLate) onLate()
        const isOpen = isLate && (waiting.length > 0 || [...open].some((call) => since(call) < IDLE_MS))
        const mayGoOn = isLate && now - endedAt < (goesOn ? TOOL_STEP_MS : STEP_MS)
        if (isRead || isOpen || mayGoOn) return void runtime.timer(LOOK_MS, safely)
        this.#returning.delete(calls)
        const isLeft = isLate && (open.size > 0 || isAborted)
        resolve({ isAborted: isLeft, ...(isLate && open.size === 0 && { at: endedAt }) })
      }
      const safely = (): void => {
        try {
          closeEnded()
        } catch {
          resolve({ isAborted: false })
        }
      }
      // Wait a moment: frameworks may begin a call just after they return.
      runtime.soon(safely)
    })
  }

  #in(scope: RunScope): Calls {
    const calls = this.#calls.get(scope) ?? {
      open: new Set(),
      endedAt: 0,
      goesOn: false,
      isAborted: false,
      isLate: false,
    }
    this.#calls.set(scope, calls)
    return calls
  }
}
