/** Guards an agent's tool calls. Each one is a GuardedCall. */
import type { Context } from '../recording/context.ts'
import { noteUnknown } from '../delivery/diagnostics.ts'
import { beginPart, enclosingPart, type RunPart } from '../recording/part.ts'
import { outcomeOf } from '../recording/run.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import { isPending } from '../border.ts'
import { ToolBlockedError } from './blocked.ts'
import { CallRecord } from './call-record.ts'
import { continueCall, type CallParts } from './call-approval.ts'
import { GuardedCall } from './guarded-call.ts'
import { inputOfArguments, takeInput, type TakenCall } from './input.ts'
import { Judge } from './judgement.ts'
import { modelText } from './model-text.ts'
import { createRecoveries } from './recoveries.ts'
import { isTaped, tapedCall } from './taped-call.ts'
import {
  RULES,
  type Authorization,
  type Call,
  type CallDecision,
  type GuardedCall as GuardedCallOptions,
  type GuardOptions,
  type GuardRules,
} from './rules.ts'

export class Guard {
  readonly #parts: CallParts
  readonly #judge: Judge
  readonly #recoveries = createRecoveries()

  constructor(parts: CallParts) {
    this.#parts = parts
    this.#judge = new Judge(parts)
  }

  continued<Args extends unknown[], T>(
    context: Context | undefined,
    approvalId: string,
    tool: (...args: Args) => T,
  ): Promise<Awaited<T>> {
    return continueCall(this.#parts.core, context, approvalId, tool)
  }

  async decide(context: Context | undefined, call: Call, rules: GuardRules): Promise<CallDecision> {
    const runPart = enclosingPart(this.#parts.core, context)
    const taken = this.#taken('decide()', call, rules)
    const { guarded, record } = this.#begin(runPart, taken, context)
    const decision = await guarded.decide()
    if (!record.isEmpty) runPart.end('COMPLETED')
    const { core } = this.#parts
    if (decision.action !== 'BLOCK' && isTaped(core)) {
      // In a replay, the tape only checks the call: the host runs the tool itself.
      try {
        await tapedCall(core, taken)
      } catch (error) {
        return { ...decision, action: 'BLOCK', reason: String(error) }
      }
    }
    return decision
  }

  /** Counts and decides one call without running it. @throws ToolBlockedError if the call may not run. */
  async authorize(
    context: Context | undefined,
    call: Call,
    rules: GuardRules,
    signal: StopSignal | undefined,
  ): Promise<Authorization> {
    const runPart = enclosingPart(this.#parts.core, context)
    try {
      const asked = this.#asked(runPart, this.#taken('authorize()', call, rules, signal))
      const { guarded, record } = this.#begin(runPart, asked, context)
      const { core } = this.#parts
      if (isTaped(core)) await tapedCall(core, asked)
      const { decision, approvalId } = await guarded.admit((admitted) => admitted)
      if (!record.isEmpty) runPart.end('COMPLETED')
      return { ...decision, approvalId }
    } catch (error) {
      leaveOrEnd(runPart, error)
      throw error
    }
  }

  /** Runs one call of a wrapped tool. @param args must have no other reference. */
  wrapped<Args extends unknown[], T>(
    context: Context | undefined,
    { name, input, riskSignals, annotations, server, signal, key, toolCallId, ...rules }: GuardOptions<Args>,
    args: Args,
    act: () => T,
  ): Promise<Awaited<T>> {
    this.#note('guard()', name, rules)
    const read = () => (input ?? inputOfArguments)(...args)
    if (!input && args.length > 1) this.#parts.core.diagnostics.report('warning', 'guard_input', unnamedArguments(name))
    const call: TakenCall = {
      toolName: name,
      input: takeInput(read()),
      riskSignals: riskSignals?.(...args) ?? [],
      annotations: annotations?.(...args),
      server,
      rules,
      signal: signal?.(...args),
      readAgain: input && read,
      key: key?.(...args),
      toolCallId: toolCallId?.(...args),
      args,
    }
    return this.#call(context, call, act)
  }

  /** @throws ToolBlockedError if the call may not run; otherwise whatever it throws. */
  call<Input, T>(
    context: Context | undefined,
    {
      name,
      input,
      call,
      hasDates,
      riskSignals = [],
      annotations,
      server,
      signal,
      key,
      toolCallId,
      ...rules
    }: GuardedCallOptions<Input, T>,
  ): Promise<Awaited<T>> {
    this.#note('guardedCall()', name, rules)
    const facts = { toolName: name, input: takeInput(input, hasDates), riskSignals, annotations, server }
    const taken = { ...facts, rules, signal, key, toolCallId, args: [input] }
    return this.#call(context, taken, (judgedInput) => call(judgedInput as Input))
  }

  #taken(
    act: string,
    { toolName, input, riskSignals = [], annotations, server, key, toolCallId, ...others }: Call,
    rules: GuardRules,
    signal?: StopSignal,
  ): TakenCall {
    this.#note(act, toolName, { ...others, ...rules })
    const facts = { toolName, input: takeInput(input), riskSignals, annotations, server }
    return { ...facts, rules, signal, key, toolCallId, args: [input] }
  }

  #note(act: string, name: unknown, rules: object): void {
    const { diagnostics } = this.#parts.core
    noteUnknown(diagnostics, act, rules, RULES)
    if (typeof name !== 'string' || name === '') {
      diagnostics.report('warning', 'invalid_option', `${act} needs the name of the tool.`)
    }
  }

  async #call<T>(context: Context | undefined, call: TakenCall, act: (input: unknown) => T): Promise<Awaited<T>> {
    const runPart = beginPart(this.#parts.core, context)
    try {
      const { guarded } = this.#begin(runPart, this.#asked(runPart, call), context)
      return await guarded.run(act, (failure) => runPart.end(failure ? outcomeOf(failure.error) : 'COMPLETED'))
    } catch (error) {
      leaveOrEnd(runPart, error)
      throw error
    }
  }

  /** @throws ToolBlockedError if the model's answer ended before its arguments were complete. */
  #asked({ core, context }: RunPart, call: TakenCall): TakenCall {
    const { toolName, key, input } = call
    const asked = core.asked?.begin(context.scope.state, toolName, key, input.recorded)
    if (!asked) return call
    if (asked.problem === undefined) return { ...call, toolCallId: call.toolCallId ?? key ?? asked.id }
    const none = { inputHash: null, policyIds: [], approvalId: null, decisionReason: null, policyMessage: null }
    const facts = { code: 'call_cut', toolName, reason: 'the arguments are not complete', ...none } as const
    const error = new ToolBlockedError(facts, modelText(facts))
    core.asked?.refused(asked, error.modelText)
    throw error
  }

  #begin(
    runPart: RunPart,
    call: TakenCall,
    context: Context | undefined,
  ): { guarded: GuardedCall; record: CallRecord } {
    const parts = { ...this.#parts, recoveries: this.#recoveries }
    const hashed = this.#parts.hashInput(call.toolName, call.input.judged)
    const record = new CallRecord(parts, runPart.context, call, hashed)
    const continues = context?.continues
    return { guarded: new GuardedCall(this.#parts, this.#judge, runPart, call, { hashed, record, continues }), record }
  }
}

function unnamedArguments(name: string): string {
  return `${name} was called with several arguments: policies see tool.input.args, without names. Give guard() an input: (id, amount) => ({ id, amount }).`
}

/** Leaves the run of a pending call open: the process that continues the call ends the run. */
function leaveOrEnd(runPart: RunPart, error: unknown): void {
  if (isPending(error)) runPart.leave()
  else runPart.end(outcomeOf(error))
}
