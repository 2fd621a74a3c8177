import { host as hostProcess } from '#process'
import { CORE } from './border.ts'
import { toPrompt, type Prompt, type VariablesOf } from './configuration/prompt.ts'
import type { Context, RunScope } from './context.ts'
import { attempt, createCore, type Core, type EndLate, type OpenRun } from './core.ts'
import { isStreamed, observeGenerator, type Failure } from './ending.ts'
import { detached } from './detach.ts'
import type { Counters } from './diagnostics.ts'
import { draftOf, type NewEvent } from './event.ts'
import { isPending, ToolBlockedError } from './guard/blocked.ts'
import type { Guard } from './guard/guard.ts'
import type { Overloaded, OverloadsOf, Tool } from './guard/overloads.ts'
import type { Authorization, Call, CallDecision, GuardedCall, GuardOptions, GuardRules } from './guard/rules.ts'
import type { IssueRecordCounters, IssueReport } from './issue-records.ts'
import { LazyControl, RuntimeConfiguration } from './lazy-control.ts'
import type { TachoOptions } from './options.ts'
import { createScope, outcomeOf, Run, type RunHandle, type RunOptions } from './run.ts'
import { readSafely } from './json.ts'
import type { ScoreDetails, ScoreValue } from './score.ts'
import { hostRuntime, type Runtime, type StopSignal } from './runtime.ts'
import type { FlushResult } from './sender.ts'

/** Most open runs that the end of the process ends: a host may begin runs and never end them. */
const OPEN_RUNS_MAX = 10_000

/** A run begins at its first event. If that comes later than this, an event before it says when the host entered the run. */
const LATE_START_MS = 500

type ServerlessOptions = RunOptions & { waitUntil?: ((promise: Promise<unknown>) => void) | undefined }
/** Arguments of `run`: the options are optional. */
type Given<Options, T> = [act: (run: Run) => T] | [options: Options, act: (run: Run) => T]

function optionsAndAct<Options extends object, T>([first, act]: Given<Options, T>) {
  return (typeof first === 'function' ? [{}, first] : [first, act]) as [Partial<Options>, (run: Run) => T]
}

/** A client of one environment. Recording never throws, never waits and never ends its host process. */
export class Tacho {
  /** @internal Published code is minified, which would shorten it. */
  static readonly name: string = 'Tacho'
  readonly #core: Core
  readonly #control: LazyControl
  #forgetEnd: (() => void) | undefined
  /** A delivery at the end of the process was not completed in its time. */
  #isGivenUp = false
  /** The deployed prompts and policies. */
  readonly configuration: RuntimeConfiguration

  constructor(options?: TachoOptions)
  /** @internal For our tests: another clock, network or source of randomness. */
  constructor(options?: TachoOptions, runtime?: Runtime)
  constructor(options: TachoOptions = {}, runtime: Runtime = hostRuntime) {
    const core = createCore(options, runtime)
    this.#core = core
    core.observers.add((scope, { at }) => {
      const { enteredAt: from = Infinity } = scope
      scope.enteredAt = undefined
      const isLate = Number(at ?? runtime.now()) - from >= (runtime.lateStartMs ?? LATE_START_MS)
      if (isLate && scope.isSampled) {
        core.record(scope, { type: 'AGENT_STEP', label: 'run started', at: from, span: scope.span })
      }
    })
    // Not enumerable: a printed client stays short.
    Object.defineProperty(this, CORE, { value: core })
    const { configuration = {}, guard = {} } = core.options
    this.#control = new LazyControl(core, { configuration, guard })
    this.configuration = new RuntimeConfiguration(this.#control)
    if (!hostProcess) return
    this.#forgetEnd = hostProcess.endRunsAtEnd({
      flushOnSignals: core.settings.flushOnSignals,
      hasQueued: () => core.sender.held.queued > 0 || this.#control.hasQueued,
      flush: () => this.#flushAtEnd(),
      endRuns(status, failure, isFailed) {
        for (const held of core.heldCalls) held.leave('process_ended')
        for (const [run, how] of core.openRuns) if (how === 'own' || isFailed) run.fail(status, failure)
      },
      deliverNow: (spentMs) => {
        if (this.#isGivenUp) return
        core.deliverNow(core.settings.flushTimeoutMs - spentMs)
        this.#giveUp(core.sender.held.queued)
      },
      warn(clients) {
        const message = `${clients} clients are open. Create one for the process, or call shutdown on each.`
        core.diagnostics.report('warning', 'clients_open', message)
      },
    })
  }

  /** Reports the events that could not be delivered before the process ends. */
  async #flushAtEnd(): Promise<void> {
    // The time of a flush has passed already.
    const isOver = hostProcess?.isHostOver()
    const { left } = await (isOver ? this.flush(0) : this.flush())
    if (!isOver) await this.#control.loaded?.configuration.leave()
    this.#giveUp(left)
  }

  #giveUp(left: number): void {
    if (left === 0) return
    this.#isGivenUp = true
    this.#core.endRequests()
    const { baseUrl, spool } = this.#core.settings
    const fate = spool ? 'The spool keeps them.' : `They are lost.${hostProcess?.hint() ?? ''}`
    this.#core.diagnostics.report('error', 'events_undelivered', `Not delivered to ${baseUrl}: ${left} events. ${fate}`)
  }

  /**
   * Runs `act` as one agent execution. Records the outcome when it ends: COMPLETED, FAILED if it throws, CANCELLED if
   * it throws an AbortError. Returns or throws what `act` returns or throws. A run that returns a generator, a stream, a
   * Response or an async iterable ends when its body does.
   */
  run<T>(act: (run: Run) => T): Promise<Awaited<T>>
  run<T>(options: RunOptions, act: (run: Run) => T): Promise<Awaited<T>>
  run<T>(...given: Given<RunOptions, T>): Promise<Awaited<T>> {
    const [options, act] = optionsAndAct(given)
    return this.#act(options, act)
  }

  /**
   * The same for serverless functions. Delivers before it returns, or before a streamed body closes. With `waitUntil`, the
   * platform waits for the delivery instead. It may be given per run, because Cloudflare creates one for each request.
   */
  withRun<T>(act: (run: Run) => T): Promise<Awaited<T>>
  withRun<T>(options: ServerlessOptions, act: (run: Run) => T): Promise<Awaited<T>>
  withRun<T>(...given: Given<ServerlessOptions, T>): Promise<Awaited<T>> {
    const [{ waitUntil, ...options }, act] = optionsAndAct(given)
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
    const end: EndLate = (thrown?: Failure, isCancelled = false, at?: number) => {
      const failure = thrown ?? (isCancelled ? undefined : scope.failure)
      // The run ends where the call is continued.
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
    const streamed = isStreamed(result) && (await import('./streamed-result.ts').catch(() => undefined))
    if (streamed) return (await streamed.observeResult(result, within, end, this.#core.runtime)) as Awaited<T>
    const { background } = this.#core
    await (readSafely(() => background?.endWhenQuiet(run, scope, result, isAwaited, end), undefined) ?? end())
    return result
  }

  /** Begins a run without a callback. Call its `end`, or the run stays RUNNING. */
  startRun(options: RunOptions = {}): Run {
    const scope = createScope(this.#core, options)
    // It may have begun elsewhere.
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
   * Says how good a run is, or one step of it, from any process and at any later time: a user's feedback, for example. The latest
   * counts for each name, step and author. If it may arrive before the run's first event, give the run's handle or agent.
   */
  score(
    run: string | Pick<RunHandle, 'runId'>,
    name: string,
    value: ScoreValue,
    given?: string | (ScoreDetails & Pick<RunOptions, 'agentId' | 'agentName'>),
  ): string | undefined {
    const { runId, agentId, agentName, sessionId } = readSafely((): RunOptions => {
      const { agentId, agentName }: RunOptions = typeof given === 'object' ? given : {}
      const named = typeof run === 'string' ? { runId: run } : run
      return { ...named, ...(agentId !== undefined && { agentId }), ...(agentName !== undefined && { agentName }) }
    }, {})
    if (typeof runId !== 'string') {
      this.#core.diagnostics.report('warning', 'invalid_score', 'A score was left out: it names no run.')
      return undefined
    }
    return this.#core.score(createScope(this.#core, { runId, agentId, agentName, sessionId }), name, value, given, true)
  }

  /** Resolves when the events and issue records that the spool kept, if any, are queued. */
  async ready(): Promise<void> {
    await this.#core.opened
    await this.#control.issues?.opened
  }

  /**
   * The deployed version of a prompt. Returns the fallback while nothing is loaded (see `configuration.ready`) or
   * deployed. Inside a run, later events and issue records of the current span, and of spans that begin in it later, carry
   * its `promptVersionId`, or `promptFallback: true` for the fallback.
   */
  prompt<const Text extends string>(name: string, fallback: Text): Prompt<VariablesOf<Text>> {
    const { current } = this.configuration.state
    const missed = (variable?: string) =>
      void this.#control.tryLoad().then((control) => control?.configuration.missed(name, variable))
    if (!current) missed()
    const deployed = current?.prompts.find((prompt) => prompt.name === name)
    const span = this.#context?.span
    const promptVersionId = deployed?.versionId
    if (span) span.marks = { ...span.marks, promptVersionId, promptFallback: deployed ? undefined : true }
    return toPrompt(name, fallback, deployed, missed)
  }

  /**
   * Wraps a tool. Policies decide each call, the call is recorded, and a person approves it first if a policy requires
   * that. The wrapper rejects with a ToolBlockedError if the tool may not run. Otherwise it returns or throws what the
   * tool returns or throws. The tool gets copies of arguments that are plain JSON: later changes have no effect.
   */
  guard<T extends Tool>(
    tool: T & Overloaded<T>,
    options: GuardOptions<OverloadsOf<T>['args']>,
  ): OverloadsOf<T>['guarded']
  guard<This, Args extends unknown[], T>(
    tool: (this: This, ...args: Args) => T,
    options: NoInfer<GuardOptions<Args>>,
  ): (this: This, ...args: Args) => Promise<Awaited<T>>
  guard<This, Args extends unknown[], T>(
    tool: (this: This, ...args: Args) => T,
    options: GuardOptions<Args>,
  ): (this: This, ...args: Args) => Promise<Awaited<T>> {
    const given = { ...options }
    const call = async (self: This, args: Args): Promise<Awaited<T>> => {
      const context = this.#context
      const own = args.map(detached) as Args
      return (await this.#guard(given.name)).wrapped(context, given, own, () => Reflect.apply(tool, self, own) as T)
    }
    return function (this: This, ...args: Args) {
      return call(this, args)
    }
  }

  /**
   * The same for one call: for your own loop over the tool calls of a model, and for integrations. Call it where the tool's
   * own function would be called, with the input that this function would get.
   */
  async guardedCall<Input, T>(call: GuardedCall<Input, T>): Promise<Awaited<T>> {
    const context = this.#context
    const own = { ...call, input: detached(call.input) as Input }
    return (await this.#guard(own.name)).call(context, own)
  }

  /**
   * Continues a call of the current run that waits for a person, with the arguments that were approved. `tool` is the wrapped
   * tool. It runs once for an approval, in one of all processes, and only under the policy for which the person approved.
   * @throws ToolBlockedError as the tool's own wrapper: `approval_pending` as long as no person has decided.
   */
  async continueCall<Args extends unknown[], T>(approvalId: string, tool: (...args: Args) => T): Promise<Awaited<T>> {
    const context = this.#context
    return (await this.#guard('call')).continued(context, approvalId, tool)
  }

  /**
   * Decides about a call and records the decision, without running anything: for tools that `guard` cannot wrap. It
   * requests no approval; on REQUIRE_APPROVAL, the caller must.
   */
  decide(call: Call, rules: GuardRules = {}): Promise<CallDecision> {
    return this.#judge('decide', call, rules)
  }

  /**
   * Decides about a call, records the decision, and waits for a person if a policy requires that, without running
   * anything: for tools that another program runs. Record the result with `toolCall`.
   * @throws ToolBlockedError if the tool may not run.
   */
  authorize(call: Call, rules: GuardRules = {}, signal?: StopSignal): Promise<Authorization> {
    return this.#judge('authorize', call, rules, signal)
  }

  async #judge<Act extends 'decide' | 'authorize'>(
    act: Act,
    call: Call,
    rules: GuardRules,
    signal?: StopSignal,
  ): Promise<Awaited<ReturnType<Guard[Act]>>> {
    const context = this.#context
    const own = { ...call, input: detached(call.input) }
    const guard: Pick<Guard, 'decide' | 'authorize'> = await this.#guard(own.toolName)
    return (await guard[act](context, own, rules, signal)) as Awaited<ReturnType<Guard[Act]>>
  }

  /** Queues an issue record: a detection, or the recovery from one. Returns at once. */
  reportIssue(report: IssueReport): void {
    this.#control.report(this.#context?.scope, report)
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
    const [result] = await Promise.all([this.#core.sender.flush(timeoutMs), this.#control.flush(timeoutMs)])
    return result
  }

  /**
   * Flushes, then stops recording. Remaining events count as dropped, unless the spool keeps them for the next process.
   */
  async shutdown(timeoutMs?: number): Promise<FlushResult> {
    const result = await this.flush(timeoutMs)
    await this.#control.loaded?.configuration.leave()
    this.#core.sender.close()
    this.#control.close()
    this.#core.endRequests()
    this.#forgetEnd?.()
    return result
  }

  /** Counts of recorded events by result so far. */
  counters(): Counters {
    return this.#core.diagnostics.counters(this.#core.sender.held)
  }

  /** The same for issue records; null if none was reported. */
  issueRecordCounters(): IssueRecordCounters | null {
    return this.#control.issues?.counters ?? null
  }

  get #context(): Context | undefined {
    return this.#core.context.getStore()
  }

  /** If a part cannot be loaded, the tool must not run unchecked. */
  async #guard(toolName: string): Promise<Guard> {
    try {
      const control = await this.#control.load()
      return await control.guard()
    } catch {
      const none = {
        inputHash: null,
        policyIds: [],
        approvalId: null,
        reason: null,
        decisionReason: null,
        policyMessage: null,
      }
      const modelText = `The tool ${toolName} was not run: it could not be checked. Tell the user; try later.`
      throw new ToolBlockedError({ code: 'guard_failed', toolName, ...none }, modelText)
    }
  }
}
