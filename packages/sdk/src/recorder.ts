import { host as hostProcess } from '#process'
import { CORE, isPending } from './border.ts'
import type { Context, RunScope } from './recording/context.ts'
import { attempt, createCore, type Beyond, type Core, type EndLate, type OpenRun } from './core.ts'
import type { Counters } from './delivery/diagnostics.ts'
import { isStreamed, observeGenerator, type Failure } from './delivery/ending.ts'
import { draftOf, type NewEvent, type ScoreDetails, type ScoreValue } from './recording/event.ts'
import { readSafely } from './recording/json.ts'
import type { RecorderOptions } from './options.ts'
import { createScope, outcomeOf, Run, type RunHandle, type RunOptions } from './recording/run.ts'
import { hostRuntime, type Runtime } from './delivery/runtime.ts'
import type { FlushResult } from './delivery/diagnostics.ts'

/** Maximum number of open runs that end with the process. Bounded, because a host may begin runs and never end them. */
const OPEN_RUNS_MAX = 10_000

/**
 * A run begins at its first event. If that event is later than this, an extra event records when the host entered the
 * run.
 */
const LATE_START_MS = 500

type ServerlessOptions = RunOptions & { waitUntil?: ((promise: Promise<unknown>) => void) | undefined }
/** Arguments of `run`: the options are optional. */
type Given<Options, T> = [act: (run: Run) => T] | [options: Options, act: (run: Run) => T]

function optionsAndAct<Options extends object, T>([first, act]: Given<Options, T>) {
  return (typeof first === 'function' ? [{}, first] : [first, act]) as [Partial<Options>, (run: Run) => T]
}

/** Records runs for one environment. Recording never throws, never waits and never ends its host process. */
export class Recorder {
  /** @internal Published code is minified, which would shorten it. */
  static readonly name: string = 'Recorder'
  readonly #core: Core
  /** @internal */
  declare readonly [CORE]: Core
  #forgetEnd: (() => void) | undefined

  constructor(options?: RecorderOptions)
  /** @internal For our tests: another clock, network or source of randomness. `beyond`: what Tacho has besides. */
  constructor(options?: RecorderOptions, runtime?: Runtime, beyond?: Beyond)
  constructor(options: RecorderOptions = {}, runtime: Runtime = hostRuntime, beyond?: Beyond) {
    const core = createCore(options, runtime, beyond)
    this.#core = core
    core.observers.add((scope, { at }) => {
      const { enteredAt: from } = scope
      scope.enteredAt = undefined
      // Read the clock only for the first event.
      if (from && scope.isSampled && Number(at ?? runtime.now()) - from >= (runtime.lateStartMs ?? LATE_START_MS)) {
        core.record(scope, { type: 'AGENT_STEP', label: 'run started', at: from, span: scope.span })
      }
    })
    // Not enumerable, so that a printed client stays short.
    Object.defineProperty(this, CORE, { value: core })
    this.#forgetEnd = hostProcess?.endWith(core, (timeoutMs) => this.flush(timeoutMs))
  }

  /**
   * Runs `act` as one agent execution. Records the outcome when it ends: COMPLETED, FAILED if it throws, CANCELLED if
   * it throws an AbortError. Returns or throws what `act` returns or throws. A run that returns a generator, a stream, a
   * Response or an async iterable ends when its body does.
   */
  run<T>(act: (run: Run) => T): Promise<Awaited<T>>
  run<T>(options: RunOptions, act: (run: Run) => T): Promise<Awaited<T>>
  run<T>(...runArguments: Given<RunOptions, T>): Promise<Awaited<T>> {
    const [options, act] = optionsAndAct(runArguments)
    return this.#act(options, act)
  }

  /**
   * The same for serverless functions. Delivers before it returns, or before a streamed body closes. With `waitUntil`, the
   * platform waits for the delivery instead; Cloudflare creates one for each request.
   */
  withRun<T>(act: (run: Run) => T): Promise<Awaited<T>>
  withRun<T>(options: ServerlessOptions, act: (run: Run) => T): Promise<Awaited<T>>
  withRun<T>(...runArguments: Given<ServerlessOptions, T>): Promise<Awaited<T>> {
    const [{ waitUntil, ...options }, act] = optionsAndAct(runArguments)
    let deliver: () => void = () => undefined
    const delivered = new Promise<void>((resolve) => (deliver = resolve)).then(() => this.flush())
    if (waitUntil) attempt(() => waitUntil(delivered))
    const isAwaited = !waitUntil && !this.#core.settings.waitUntil
    const afterEnd = () => {
      deliver()
      return isAwaited ? delivered : undefined
    }
    return this.#act(options, act, afterEnd, isAwaited)
  }

  /** @param afterEnd is called when the run has ended. The result closes when its promise, if any, resolves. */
  async #act<T>(
    options: RunOptions,
    act: (run: Run) => T,
    afterEnd: () => Promise<unknown> | undefined = () => undefined,
    isAwaited = false,
  ): Promise<Awaited<T>> {
    const scope = createScope(this.#core, options)
    const run = this.#open(scope, 'own')
    const within = <R>(step: () => R): R => run.within(step)
    const end: EndLate = (thrown?: Failure, isCancelled?: boolean, at?: number) => {
      const failure = thrown ?? (isCancelled ? undefined : scope.failure)
      // The run of a pending call ends where the call is continued.
      if (failure && isPending(failure.error)) run.handOver()
      else if (failure) run.fail(isCancelled ? 'CANCELLED' : outcomeOf(failure.error), failure)
      else if (isCancelled) run.end('CANCELLED', undefined, at)
      else run.complete(at)
      return afterEnd()
    }
    let result: Awaited<T>
    try {
      result = await within(async () => await act(run))
    } catch (error) {
      await end({ error })
      throw error
    }
    if (observeGenerator(result, within, end)) return result
    const streamed = isStreamed(result) && (await import('./recording/streamed-result.ts').catch(() => undefined))
    if (streamed) return (await streamed.observeResult(result, within, end, this.#core.runtime)) as Awaited<T>
    const { background } = this.#core
    await (readSafely(() => background?.endWhenQuiet(run, scope, result, isAwaited, end), undefined) ?? end())
    return result
  }

  /** Begins a run without a callback. Call its `end`, or the run stays RUNNING. */
  startRun(options: RunOptions = {}): Run {
    const scope = createScope(this.#core, options)
    // A run with a given id may have begun elsewhere, so do not record when it was entered here.
    if (readSafely(() => options.runId !== undefined, false)) scope.enteredAt = undefined
    return this.#open(scope, 'started')
  }

  #open(scope: RunScope, how?: OpenRun): Run {
    const run = new Run(this.#core, scope)
    const { openRuns } = this.#core
    if (how && this.#core.sender.isOpen) openRuns.set(run, how)
    const [oldest] = openRuns.keys()
    if (oldest && openRuns.size > OPEN_RUNS_MAX) openRuns.delete(oldest)
    return run
  }

  /** Continues a run that began elsewhere. Only one of its processes should call `end`. */
  resume(handle: RunHandle): Run {
    return this.#open(createScope(this.#core, handle, handle))
  }

  /** Records an event on the current run: the innermost `run` or `within` around this call. */
  record(event: NewEvent): string | undefined {
    return this.#core.record(this.#context?.scope, () => draftOf(this.#core.diagnostics, event))
  }

  /**
   * Says how good a run is, or one step of it, from any process and at any later time. The latest
   * counts for each name, step and author. If it may arrive before the run's first event, give the run's handle or agent.
   */
  score(
    run: string | Pick<RunHandle, 'runId'>,
    name: string,
    value: ScoreValue,
    scoreDetails?: string | (ScoreDetails & Pick<RunOptions, 'agentId' | 'agentName'>),
  ): string | undefined {
    const { runId, agentId, agentName, sessionId } = readSafely((): RunOptions => {
      const named: RunOptions = typeof run === 'string' ? { runId: run } : run
      const details: RunOptions = typeof scoreDetails === 'object' ? scoreDetails : {}
      return { ...named, agentId: details.agentId ?? named.agentId, agentName: details.agentName ?? named.agentName }
    }, {})
    if (typeof runId !== 'string') {
      this.#core.diagnostics.report('warning', 'invalid_score', 'A score was left out: it names no run.')
      return undefined
    }
    return this.#core.score(
      createScope(this.#core, { runId, agentId, agentName, sessionId }),
      name,
      value,
      scoreDetails,
      true,
    )
  }

  /** Resolves when what the spool kept, if there is one, is queued. */
  async ready(): Promise<void> {
    await this.#core.opened
    await this.#core.control?.opened
  }

  /**
   * Waits until every event recorded before the call is delivered, rejected or dropped, or the time is up. Never
   * rejects. Respects a Retry-After of the service.
   */
  async flush(timeoutMs: number = this.#core.settings.flushTimeoutMs): Promise<FlushResult> {
    // Untyped hosts may pass anything.
    if (typeof timeoutMs !== 'number') return this.flush()
    const { background } = this.#core
    if (background) await background.untilKnown(timeoutMs)
    const [result] = await Promise.all([this.#core.sender.flush(timeoutMs), this.#core.control?.flush(timeoutMs)])
    return result
  }

  /**
   * Flushes, then stops recording. Remaining events count as dropped, unless the spool keeps them for the next process.
   */
  async shutdown(timeoutMs?: number): Promise<FlushResult> {
    const result = await this.flush(timeoutMs)
    await this.#core.control?.leave()
    this.#core.sender.close()
    this.#core.control?.close()
    this.#core.endRequests()
    this.#forgetEnd?.()
    return result
  }

  /** Counts of recorded events by result so far. */
  counters(): Counters {
    return this.#core.diagnostics.counters(this.#core.sender.held)
  }

  get #context(): Context | undefined {
    return this.#core.context.getStore()
  }
}
