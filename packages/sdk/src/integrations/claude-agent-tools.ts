/**
 * Tools of the Claude Agent SDK: hooks guard and record them.
 *
 *   PreToolUse --authorized--> the tool runs --> PostToolUse, PostToolUseFailure: TOOL_CALL
 *             \--refused----> deny, with the reason
 *
 * If a hook of the host changes the input, the new input is judged too. Hooks in settings files run inside Claude Code,
 * which uses their input without another decision. So the input that ran is compared with the authorized ones.
 */
import type { Context } from '../recording/context.ts'
import { detached } from '../delivery/detach.ts'
import { ToolBlockedError } from '../guard/blocked.ts'
import { takeInput } from '../guard/input.ts'
import type { Authorization } from '../guard/rules.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Tacho } from '../tacho.ts'
import { beginPart, fields, keyOf, number, OpenSpans, set, text, type Fields, type RunPart } from './host.ts'
import { messagesOf } from './messages.ts'

type Hook = (input: unknown, toolUseId?: string, options?: { signal?: StopSignal }) => Promise<unknown>

interface Pending {
  readonly context: Context
  /** One authorization for each judged input of the call. */
  readonly authorizations: Authorization[]
  /** Keyed by input hash: hooks that see the same input share one decision, so a person is asked once. */
  readonly asked: Map<string, Promise<Authorization>>
  readonly toolName: string
  /** The guard refused the call and has recorded that. */
  isRefused?: boolean
}

/**
 * In seconds. After the timeout, Claude Code runs the tool, so it is longer than the longest wait for a person, a day.
 */
const HOOK_TIMEOUT = 90_000

const GUARD_FAILED = 'The tool was not run, because its guard failed.'

export class AgentTools {
  readonly #tacho: Tacho
  readonly #begin: (sessionId: unknown) => RunPart
  /** Pending calls, by the id of the tool use. */
  readonly #pending = new OpenSpans<Pending>()
  /** Contexts of subagents, by the tool use that started them. */
  readonly #contexts = new OpenSpans<Context>()
  /** Keyed by the hash of the input, because some hooks do not get the id of the tool use. */
  readonly #nameless = new OpenSpans<Authorization>()
  readonly #seenByHooks = new OpenSpans<true>()

  constructor(tacho: Tacho, begin: (sessionId: unknown) => RunPart) {
    this.#tacho = tacho
    this.#begin = begin
  }

  /** Options with the host's own hooks and permissions. */
  options({ hooks, canUseTool }: Fields): Fields {
    const givenHooks = fields(hooks)
    const hookOf = (event: string, hook: Hook) => [
      ...matchers(givenHooks[event]),
      { hooks: [hook], timeout: HOOK_TIMEOUT },
    ]
    const recorded: Hook = async (input) => {
      await this.#record(fields(input)).catch(() => undefined)
      return {}
    }
    return set({
      hooks: {
        ...givenHooks,
        PreToolUse: [
          ...matchers(givenHooks['PreToolUse']).map((matcher) => this.#guardMatcher(matcher, PRE_TOOL_USE)),
          { hooks: [this.#judge], timeout: HOOK_TIMEOUT },
        ],
        ...(givenHooks['PermissionRequest'] !== undefined && {
          PermissionRequest: matchers(givenHooks['PermissionRequest']).map((matcher) =>
            this.#guardMatcher(matcher, PERMISSION_REQUEST),
          ),
        }),
        PostToolUse: hookOf('PostToolUse', recorded),
        PostToolUseFailure: hookOf('PostToolUseFailure', recorded),
      },
      canUseTool: typeof canUseTool === 'function' ? this.#guardPermission(canUseTool) : undefined,
    })
  }

  /** The context of a subagent that this tool use started: below the span of the tool. */
  contextOf(toolUseId: unknown): Context | undefined {
    return typeof toolUseId === 'string' ? this.#contexts.get(toolUseId) : undefined
  }

  /** Reports a tool for which no hook was asked: the settings may switch hooks off. */
  answered(toolUseId: unknown, toolName: string): void {
    if (typeof toolUseId !== 'string' || this.#seenByHooks.get(toolUseId)) return
    const { core, context } = this.#begin(undefined)
    core.diagnostics.report(
      'warning',
      'unguarded_tool',
      `The tool ${toolName} ran without its hook, so it was not checked.`,
    )
    this.#notice(context, toolName, 'not_judged', { toolUseId })
  }

  /** Records a call for which no hook reported a start: a person or a permission rule declined it after the decision. */
  failed(toolUseId: unknown, content: unknown): void {
    const pending = this.#pending.take(String(toolUseId))
    if (!pending || pending.isRefused) return
    const { toolName, context } = pending
    const [message] = messagesOf([{ role: 'tool', content }])
    const error = { message: text(message?.content) ?? JSON.stringify(content) }
    const payload = { toolName, toolCallId: toolUseId, outcome: 'never_ran', reasonCode: 'declined', error }
    const { scope, span } = context
    this.#begin(undefined).core.record(scope, { type: 'TOOL_CALL', label: toolName, payload, span })
  }

  readonly #judge: Hook = async (input, _toolUseId, options) => {
    const { tool_input: rawInput } = fields(input)
    const refusal = await this.#refusal(fields(input), rawInput, options?.signal)
    return refusal === null ? {} : PRE_TOOL_USE.denied(refusal)
  }

  /** Null if the tool may run. Never rejects, because a hook that fails does not stop the tool. */
  async #refusal(hook: Fields, input: unknown, signal: StopSignal | undefined): Promise<string | null> {
    try {
      const { session_id: sessionId, tool_name: toolName, tool_use_id: givenId } = hook
      const id = String(givenId)
      this.#seenByHooks.set(id, true)
      const { core, context: parent } = this.#begin(sessionId)
      const pending: Pending = this.#pending.get(id) ?? {
        ...beginPart(this.#tacho, parent),
        authorizations: [],
        asked: new Map(),
        toolName: String(toolName),
      }
      this.#pending.set(id, pending)
      const { context, authorizations, asked } = pending
      this.#contexts.set(id, context)
      // Read the input before the first await, because the host may change it.
      const call = { toolName: String(toolName), input: detached(input), key: keyOf(givenId) }
      const authorize = () => core.context.run(context, () => this.#tacho.authorize(call, {}, signal))
      if (typeof givenId === 'string') {
        const inputHash = (await this.#hashOf(call.toolName, call.input)) ?? ''
        const decision = asked.get(inputHash) ?? authorize()
        if (inputHash !== '') asked.set(inputHash, decision)
        const authorization = await decision
        if (!authorizations.includes(authorization)) authorizations.push(authorization)
      } else {
        const authorization = await authorize()
        if (authorization.inputHash !== null) this.#nameless.set(authorization.inputHash, authorization)
      }
      return null
    } catch (error) {
      const pending = this.#pending.get(String(hook['tool_use_id']))
      if (pending) pending.isRefused = true
      return error instanceof ToolBlockedError ? error.modelText : GUARD_FAILED
    }
  }

  /** A hook of the host may change the input after the decision. */
  #guardMatcher(matcher: Fields, event: HookEvent): Fields {
    const guard =
      (hook: Hook): Hook =>
      async (input, toolUseId, options) => {
        const output = await hook(input, toolUseId, options)
        const updated = event.updatedInput(fields(fields(output)['hookSpecificOutput']))
        if (updated === undefined) return output
        const refusal = await this.#refusal({ tool_use_id: toolUseId, ...fields(input) }, updated, options?.signal)
        return refusal === null ? output : event.denied(refusal)
      }
    const hooks = Array.isArray(matcher['hooks']) ? (matcher['hooks'] as Hook[]) : []
    return { ...matcher, hooks: hooks.map(guard), timeout: HOOK_TIMEOUT }
  }

  /** Wraps the host's permission function. */
  #guardPermission(canUseTool: Function) {
    return async (name: string, input: unknown, options: { toolUseID?: string; signal?: StopSignal }) => {
      // Compare texts, because the host may change the object in place.
      const before = JSON.stringify(input)
      const answer: unknown = await canUseTool(name, input, options)
      const { behavior, updatedInput = input } = fields(answer)
      if (behavior !== 'allow' || JSON.stringify(updatedInput) === before) return answer
      const hook = { tool_name: name, tool_use_id: options.toolUseID }
      const refusal = await this.#refusal(hook, updatedInput, options.signal)
      return refusal === null ? answer : { behavior: 'deny', message: refusal }
    }
  }

  /** Hash of an input as in events and approvals; null if the input cannot be hashed. */
  async #hashOf(toolName: string, input: unknown): Promise<string | null> {
    const { core } = this.#begin(undefined)
    try {
      if (core.hashInput) return core.hashInput(toolName, takeInput(detached(input)).judged).inputHash
      // Compare only after the call was judged.
      const { inputHash } = await import('../policies.ts')
      return inputHash(toolName, input)
    } catch {
      return null
    }
  }

  async #record(hook: Fields): Promise<void> {
    const { session_id: sessionId, tool_name: name, tool_input: input, tool_use_id: id } = hook
    const toolName = String(name)
    const { core, context: parent } = this.#begin(sessionId)
    const pending = this.#pending.take(String(id))
    const { context } = pending ?? beginPart(this.#tacho, parent)
    const inputHash = await this.#hashOf(toolName, input)
    const authorizations = pending?.authorizations ?? []
    const authorization =
      authorizations.find((waitingCall) => waitingCall.inputHash === inputHash) ?? this.#nameless.take(inputHash ?? '')
    // The approval of another input stays with the call: the service compares the hashes and reports the difference.
    const approvalId = (authorization ?? authorizations.find((waitingCall) => waitingCall.approvalId !== null))
      ?.approvalId
    const isFailure = hook['hook_event_name'] === 'PostToolUseFailure'
    const isCancelled = isFailure && hook['is_interrupt'] === true
    const payload = set({
      toolName,
      toolCallId: text(id),
      outcome: isCancelled ? 'cancelled' : isFailure ? 'failed' : 'returned',
      input,
      ...(isFailure ? { error: hook['error'] } : { output: outputOf(hook['tool_response']) }),
      latency: number(hook['duration_ms']),
      inputHash: inputHash ?? undefined,
      approvalId: approvalId ?? undefined,
    })
    const { scope, span } = context
    const eventId = core.record(scope, { type: 'TOOL_CALL', label: toolName, payload, span })
    if (!authorization) {
      const judgedInputHash = authorizations.at(-1)?.inputHash
      const changed = approvalId ? 'changed_after_approval' : 'changed_after_decision'
      const facts = { inputHash, judgedInputHash, approvalId }
      this.#notice(context, toolName, authorizations.length > 0 ? changed : 'not_authorized', facts)
    }
    if (!isFailure || isCancelled) return
    const report = { detectionType: 'TOOL_FAILED', payload: { toolName, reasonCode: 'tool_error' }, eventId }
    core.context.run(context, () => this.#tacho.reportIssue(report))
  }

  #notice(context: Context, toolName: string, code: keyof typeof NOTICES, facts: Fields): void {
    const { core } = this.#begin(undefined)
    const { scope, span } = context
    const message = `The tool ${toolName} ${NOTICES[code]}`
    const evidence = set(Object.fromEntries(Object.entries(facts).map(([key, fact]) => [key, fact ?? undefined])))
    const payload = { code, message, toolName, ...evidence }
    const eventId = core.record(scope, { type: 'ERROR', label: `${code} ${toolName}`, payload, span })
    const detectionType = code.startsWith('changed') ? 'INPUT_CHANGED' : 'TOOL_NOT_JUDGED'
    const report = { detectionType, payload: { toolName, reasonCode: code }, evidence, eventId }
    core.context.run(context, () => this.#tacho.reportIssue(report))
  }
}

const NOTICES = {
  changed_after_approval: 'ran with another input than the one that was approved.',
  changed_after_decision: 'ran with another input than the one that was judged.',
  not_authorized: 'ran although it was not allowed to.',
  not_judged: 'ran without a decision, because its hook was not called.',
} as const

interface HookEvent {
  updatedInput(output: Fields): unknown
  denied(reason: string): Fields
}

const PRE_TOOL_USE: HookEvent = {
  updatedInput: ({ updatedInput }) => updatedInput,
  denied: (reason) => ({
    hookSpecificOutput: {
      hookEventName: 'PreToolUse',
      permissionDecision: 'deny',
      permissionDecisionReason: reason,
    },
  }),
}

const PERMISSION_REQUEST: HookEvent = {
  updatedInput: ({ decision }) => fields(decision)['updatedInput'],
  denied: (message) => ({
    hookSpecificOutput: { hookEventName: 'PermissionRequest', decision: { behavior: 'deny', message } },
  }),
}

function matchers(rawMatchers: unknown): Fields[] {
  return Array.isArray(rawMatchers) ? rawMatchers.map(fields) : []
}

/** The content parts of an MCP tool's result. Text parts become plain text. */
function outputOf(response: unknown): unknown {
  const isParts =
    Array.isArray(response) && response.every((responsePart) => text(fields(responsePart)['type']) !== undefined)
  return isParts ? messagesOf([{ role: 'tool', content: response }])[0]?.content : response
}
