import { whole } from '#whole'
import { CORE } from './border.ts'
import { toPrompt, type Prompt, type VariablesOf } from './configuration/prompt.ts'
import type { Context } from './recording/context.ts'
import type { Beyond } from './core.ts'
import { detached } from './delivery/detach.ts'
import { ToolBlockedError } from './guard/blocked.ts'
import type { Guard } from './guard/guard.ts'
import type { Overloaded, OverloadsOf, Tool } from './guard/overloads.ts'
import type { Authorization, Call, CallDecision, GuardedCall, GuardOptions, GuardRules } from './guard/rules.ts'
import type { IssueRecordCounters, IssueReport } from './delivery/issue-records.ts'
import { LazyControl, RuntimeConfiguration } from './lazy-control.ts'
import type { TachoOptions } from './options.ts'
import { Recorder } from './recorder.ts'
import { createCarrying } from './recording/run-usage.ts'
import { hostRuntime, type Runtime, type StopSignal } from './delivery/runtime.ts'

const BEYOND: Beyond = {
  carrying: (parts) =>
    createCarrying(parts, {
      ...whole,
      loadCounts: async () => (await import('./recording/usage-shapes.ts')).callCounts,
    }),
  hmac: async (key, text) => (await import('./delivery/sha256.ts')).hmacSha256(key, text),
  ...whole,
}

/** A client of one environment: records runs, guards tools, and has the deployed prompts. */
export class Tacho extends Recorder {
  /** @internal Published code is minified, which would shorten it. */
  static override readonly name: string = 'Tacho'
  readonly #control: LazyControl
  /** The deployed prompts and policies. */
  readonly configuration: RuntimeConfiguration

  constructor(options?: TachoOptions)
  /** @internal For our tests: another clock, network or source of randomness. */
  constructor(options?: TachoOptions, runtime?: Runtime)
  constructor(options: TachoOptions = {}, runtime: Runtime = hostRuntime) {
    super(options, runtime, BEYOND)
    const core = this[CORE]
    const { configuration = {}, guard = {} } = core.options
    core.control = this.#control = new LazyControl(core, { configuration, guard })
    this.configuration = new RuntimeConfiguration(this.#control)
  }

  /**
   * The deployed version of a prompt. Returns the fallback while nothing is loaded (see `configuration.ready`) or
   * deployed. Inside a run, later events and issue records of the current span, and of spans that begin in it later, carry
   * its `promptVersionId`, or `promptFallback: true` for the fallback.
   */
  prompt<const Text extends string>(name: string, fallback: Text): Prompt<VariablesOf<Text>> {
    const missed = (variable?: string) =>
      void this.#control.tryLoad().then((control) => control?.configuration.missed(name, variable))
    const source = this.#control.loaded?.configuration
    if (!source?.state.current) missed()
    const context = this.#context
    const deployed = source?.promptOf(name, context?.scope)
    const span = context?.span
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
    const givenOptions = { ...options }
    const call = async (self: This, args: Args): Promise<Awaited<T>> => {
      const context = this.#context
      const detachedArgs = args.map(detached) as Args
      return (await this.#guard(givenOptions.name)).wrapped(
        context,
        givenOptions,
        detachedArgs,
        () => Reflect.apply(tool, self, detachedArgs) as T,
      )
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
    const detachedCall = { ...call, input: detached(call.input) as Input }
    return (await this.#guard(detachedCall.name)).call(context, detachedCall)
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
    const detachedCall = { ...call, input: detached(call.input) }
    const guard: Pick<Guard, 'decide' | 'authorize'> = await this.#guard(detachedCall.toolName)
    return (await guard[act](context, detachedCall, rules, signal)) as Awaited<ReturnType<Guard[Act]>>
  }

  /** Queues an issue record: a detection, or the recovery from one. Returns at once. */
  reportIssue(report: IssueReport): void {
    this.#control.report(this.#context?.scope, report)
  }

  /** The same for issue records; null if none was reported. */
  issueRecordCounters(): IssueRecordCounters | null {
    return this.#control.issues?.counters ?? null
  }

  get #context(): Context | undefined {
    return this[CORE].context.getStore()
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
