import { toPrompt, type Prompt, type VariablesOf } from './configuration/prompt.ts'
import { createCore, type Core } from './core.ts'
import type { Counters } from './diagnostics.ts'
import type { EventType, Payload } from './event.ts'
import { ToolBlockedError } from './guard/blocked.ts'
import type { Guard } from './guard/guard.ts'
import type { Call, CallDecision, GuardRules } from './guard/rules.ts'
import type { IssueRecordCounters, IssueReport } from './issue-records.ts'
import { LazyControl, RuntimeConfiguration } from './lazy-control.ts'
import type { TachoOptions } from './options.ts'
import { createScope, Run, type RunOptions } from './run.ts'
import { hostRuntime, type Runtime } from './runtime.ts'
import type { FlushResult } from './sender.ts'

/** A client of one environment. Nothing here throws, waits or ends the process of its host. */
export class Tacho {
  readonly #core: Core
  readonly #control: LazyControl
  /** The prompts and policies that are in force. */
  readonly configuration: RuntimeConfiguration

  /** `runtime` is for tests: another clock, network or source of chance. */
  constructor(options: TachoOptions = {}, runtime: Runtime = hostRuntime) {
    this.#core = createCore(options, runtime)
    const { configuration = {}, guard = {} } = options
    this.#control = new LazyControl(this.#core, { configuration, guard })
    this.configuration = new RuntimeConfiguration(this.#control)
  }

  /** Runs `act` as one agent execution and records its outcome; what `act` returns or throws comes out unchanged. */
  async run<T>(options: RunOptions, act: (run: Run) => T): Promise<Awaited<T>> {
    const run = this.startRun(options)
    try {
      const result = await run.within(() => act(run))
      run.end('COMPLETED')
      return result
    } catch (error) {
      const isAbort = error instanceof Error && error.name === 'AbortError'
      run.end(isAbort ? 'CANCELLED' : 'FAILED', { error: String(error) })
      throw error
    }
  }

  /** Begins or continues a run without a callback; call its `end`. */
  startRun(options: RunOptions = {}): Run {
    return new Run(this.#core, createScope(this.#core, options))
  }

  /** Records an event on the current run. */
  record(type: EventType, label: string, payload?: Payload): string | undefined {
    return this.#core.record(this.#core.context.getStore()?.scope, { type, label, payload })
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

  /** Waits until everything recorded so far is delivered, rejected or dropped, or the time is up. */
  async flush(timeoutMs: number = this.#core.settings.flushTimeoutMs): Promise<FlushResult> {
    const [result] = await Promise.all([this.#core.sender.flush(timeoutMs), this.#control.flush(timeoutMs)])
    return result
  }

  /** Delivers what is queued, then takes nothing more. */
  async shutdown(timeoutMs?: number): Promise<FlushResult> {
    const result = await this.flush(timeoutMs)
    this.#core.sender.close()
    this.#control.close()
    return result
  }

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
      throw new ToolBlockedError({ code: 'guard_failed', toolName, ...none })
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
  signal?: (...args: Args) => AbortSignal | undefined
}

function inputOfArguments(...args: unknown[]): unknown {
  const [first] = args
  const isObject = typeof first === 'object' && first !== null && !Array.isArray(first)
  if (args.length === 1 && isObject) return first
  return args.length === 0 ? {} : { args }
}
