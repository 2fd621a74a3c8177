import { toPrompt, type Prompt, type VariablesOf } from './configuration/prompt.ts'
import { attempt, createCore, type Core } from './core.ts'
import type { Counters } from './diagnostics.ts'
import type { EventType } from './event.ts'
import { ToolBlockedError } from './guard/blocked.ts'
import type { Guard } from './guard/guard.ts'
import type { Call, CallDecision, GuardRules } from './guard/rules.ts'
import type { IssueRecordCounters, IssueReport } from './issue-records.ts'
import { LazyControl, RuntimeConfiguration } from './lazy-control.ts'
import type { TachoOptions } from './options.ts'
import type { Payload } from './payload.ts'
import { flushAtEnd } from './process-end.ts'
import { createScope, Run, type RunHandle, type RunOptions } from './run.ts'
import { hostRuntime, type Runtime, type StopSignal } from './runtime.ts'
import type { FlushResult } from './sender.ts'

/** A client of one environment. Recording never throws, waits or ends the process of its host. */
export class Tacho {
  readonly #core: Core
  readonly #control: LazyControl
  readonly #forgetEnd: () => void
  /** The prompts and policies that are in force. */
  readonly configuration: RuntimeConfiguration

  /** `runtime` is for tests: another clock, network or source of chance. */
  constructor(options: TachoOptions = {}, runtime: Runtime = hostRuntime) {
    const core = createCore(options, runtime)
    this.#core = core
    const { configuration = {}, guard = {} } = options
    this.#control = new LazyControl(core, { configuration, guard })
    this.configuration = new RuntimeConfiguration(this.#control)
    this.#forgetEnd = flushAtEnd({
      flushOnSignals: core.settings.flushOnSignals,
      hasQueued: () => core.sender.held.queued > 0 || this.#control.hasQueued,
      flush: () => this.flush(),
    })
  }

  /**
   * Runs `act` as one agent execution. Records the outcome when it ends: COMPLETED, FAILED when it throws, CANCELLED when
   * it throws an AbortError. What `act` returns or throws comes out unchanged.
   */
  async run<T>(options: RunOptions, act: (run: Run) => T): Promise<Awaited<T>> {
    const run = this.startRun(options)
    try {
      const result = await run.within(act)
      run.end('COMPLETED')
      return result
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError'
      run.end(isAbort ? 'CANCELLED' : 'FAILED', { error })
      throw error
    }
  }

  /**
   * The same for serverless functions: delivers before it returns, or hands the delivery to `waitUntil` and returns at
   * once. `waitUntil` may be given with the run, as Cloudflare makes one for each request.
   */
  async withRun<T>(
    { waitUntil, ...options }: RunOptions & { waitUntil?: (promise: Promise<unknown>) => void },
    act: (run: Run) => T,
  ): Promise<Awaited<T>> {
    try {
      return await this.run(options, act)
    } finally {
      const delivered = this.flush()
      if (!waitUntil && !this.#core.settings.waitUntil) await delivered
      else if (waitUntil) attempt(() => waitUntil(delivered))
    }
  }

  /** Begins a run without a callback. Call its `end`, or it stays RUNNING. */
  startRun(options: RunOptions = {}): Run {
    return new Run(this.#core, createScope(this.#core, options))
  }

  /** Continues a run that began elsewhere. Only one of its processes should call `end`. */
  resume(handle: RunHandle): Run {
    return this.startRun(handle)
  }

  /** Records an event on the current run, that of the innermost `run` or `within` around this call. */
  record(type: EventType, label: string, payload?: Payload): string | undefined {
    return this.#core.record(this.#core.context.getStore()?.scope, { type, label, payload })
  }

  /** Ends when the spool is open and has given back what it kept; at once without one. */
  ready(): Promise<void> {
    return this.#core.opened
  }

  /**
   * The deployed version of a prompt; the fallback until one is loaded (see `configuration.ready`) and while there is
   * none. Inside a run, later events and issue records carry its `promptVersionId`.
   */
  prompt<const Text extends string>(name: string, fallback: Text): Prompt<VariablesOf<Text>> {
    if (!this.#control.loaded) void this.configuration.ready(0)
    const { current } = this.configuration.state
    const deployed = current?.prompts.find((prompt) => prompt.name === name)
    const scope = this.#core.context.getStore()?.scope
    if (deployed) scope?.annotations.set('promptVersionId', deployed.versionId)
    else scope?.annotations.delete('promptVersionId')
    return toPrompt(name, fallback, deployed)
  }

  /**
   * Wraps a tool: each call is decided by the policies, recorded, and where a policy says so approved by a person first.
   * The wrapper rejects with a ToolBlockedError when the tool may not run; what the tool returns or throws comes out
   * unchanged.
   */
  guard<Args extends unknown[], T>(
    tool: (...args: Args) => T,
    options: GuardOptions<Args>,
  ): (...args: Args) => Promise<Awaited<T>> {
    const { name, input: inputOf = inputOfArguments, riskSignals, signal, ...rules } = options
    return async (...args): Promise<Awaited<T>> => {
      const scope = this.#core.context.getStore()?.scope
      const current = (): Call => ({
        toolName: name,
        input: inputOf(...args),
        riskSignals: riskSignals?.(...args) ?? [],
      })
      const guard = await this.#guard(name)
      return guard.call<T>(scope, current, rules, () => tool(...args), signal?.(...args))
    }
  }

  /**
   * Decides about a call and records the decision, without running anything: for tools that `guard` cannot wrap. Nobody
   * is asked: REQUIRE_APPROVAL is for the caller to carry out.
   */
  async decide(call: Call, rules: GuardRules = {}): Promise<CallDecision> {
    const scope = this.#core.context.getStore()?.scope
    const guard = await this.#guard(call.toolName)
    await guard.prepare(rules)
    return guard.decide(scope, call, rules)
  }

  /** Queues an issue record: a detection, or the recovery from one. Returns at once. */
  reportIssue(report: IssueReport): void {
    this.#control.report(this.#core.context.getStore()?.scope, report)
  }

  /**
   * Waits until every event recorded before the call is delivered, rejected or dropped, or the time is up. Never rejects.
   * It does not shorten a wait that the service asked for.
   */
  async flush(timeoutMs: number = this.#core.settings.flushTimeoutMs): Promise<FlushResult> {
    const [result] = await Promise.all([this.#core.sender.flush(timeoutMs), this.#control.flush(timeoutMs)])
    return result
  }

  /** Flushes, then records nothing more. What is left counts as dropped, unless the spool keeps it for the next process. */
  async shutdown(timeoutMs?: number): Promise<FlushResult> {
    const result = await this.flush(timeoutMs)
    this.#core.sender.close()
    this.#control.close()
    this.#forgetEnd()
    return result
  }

  /** How many events went where, so far. */
  counters(): Counters {
    return this.#core.diagnostics.counters(this.#core.sender.held)
  }

  /** The same for issue records; null while none was reported. */
  issueRecordCounters(): IssueRecordCounters | null {
    return this.#control.loaded?.issues.counters ?? null
  }

  /** What cannot be loaded must not let a tool run unchecked. */
  async #guard(toolName: string): Promise<Guard> {
    try {
      const control = await this.#control.load()
      return await control.guard()
    } catch {
      const none = { inputHash: null, policyIds: [], approvalId: null, decisionReason: null, reason: null }
      const modelText = `The tool ${toolName} was not run: it could not be checked. Tell the user; try later.`
      throw new ToolBlockedError({ code: 'guard_failed', toolName, ...none }, modelText)
    }
  }
}

export interface GuardOptions<Args extends unknown[]> extends GuardRules {
  /** Name of the tool in policies, approvals and events. Keep it stable. */
  name: string
  /** What conditions see as `tool.input`. Default: the only argument, or `{ args }` when it is not one plain object. */
  input?: (...args: Args) => unknown
  /** Names of risks, for `risk.signals` in conditions. */
  riskSignals?: (...args: Args) => readonly string[]
  /** Ends the wait for a person; the tool does not run then. */
  signal?: (...args: Args) => StopSignal | undefined
}

function inputOfArguments(...args: unknown[]): unknown {
  const [first] = args
  const isObject = typeof first === 'object' && first !== null && !Array.isArray(first)
  if (args.length === 1 && isObject) return first
  return args.length === 0 ? {} : { args }
}
