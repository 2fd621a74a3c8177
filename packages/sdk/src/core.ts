/** State that all parts of the SDK share. Only `request` holds the API key. */
import { host as hostProcess } from '#process'
import type { Context, CurrentContext, RunScope, Span } from './recording/context.ts'
import { createContext, outside } from './recording/context.ts'
import { createDiagnostics, noteUnknown, type Diagnostics } from './delivery/diagnostics.ts'
import type { Failure } from './delivery/ending.ts'
import { makeEvent, PROTECTED_TYPES, type Draft, type Payload } from './recording/event.ts'
import type { Request } from './delivery/http.ts'
import type { IssueReport } from './delivery/issue-records.ts'
import { joined, nameOf, readSafely } from './recording/json.ts'
import { LIMITS } from './limits.ts'
import { activeTrace, untraced } from './recording/open-telemetry.ts'
import { resolveOptions, type Settings, type TachoOptions } from './options.ts'
import { createPayloadCapture, type Choosing, type PayloadCapture } from './recording/payload.ts'
import { noteDrop } from './delivery/queue.ts'
import type { RunState } from './recording/run-state.ts'
import type { RotatingKey } from './delivery/rotating-key.ts'
import { DETAILS, scoreOf } from './recording/score.ts'
import type { Carrying } from './recording/run-usage.ts'
import { hostRuntime, inOnePiece, type Fetch, type Runtime } from './delivery/runtime.ts'
import { Sender, type Deliver } from './delivery/sender.ts'
import { createIds, type Ids } from './recording/uuid.ts'
import type { createWriting, Writing } from './recording/writing.ts'

/** Parts of a client beyond recording. */
export interface Beyond {
  readonly carrying?: (parts: Pick<Core, 'observers' | 'runtime'>) => Carrying
  /** Remembers texts of payloads. */
  readonly createWriting?: typeof createWriting
  /** Sends a large body with less memory. */
  readonly streamed?: typeof inOnePiece
  /** MAC of a text, in hex. */
  readonly hmac?: (key: string, text: string) => Promise<string>
  /** Opens the folder before it returns. Never rejects. */
  readonly spoolEvents?: (folder: string, sender: Sender, parts: SpoolingParts) => Promise<void>
}

type SpoolingParts = Pick<Core, 'settings' | 'runtime' | 'ids' | 'diagnostics'>

export interface Core {
  readonly options: TachoOptions
  readonly settings: Settings
  readonly runtime: Runtime
  readonly ids: Ids
  readonly request: Request
  /** Ends requests that would keep the process running. Approvals have their own signal. */
  readonly endRequests: () => void
  readonly diagnostics: Diagnostics
  /** Await `prepared` first. */
  readonly writing: () => Writing & Choosing
  readonly prepared: Promise<unknown> | undefined
  /** Captures a payload, or only its metadata if configured. Masking and bounds follow when the payload is written. */
  readonly capturePayload: PayloadCapture
  readonly context: CurrentContext
  readonly sender: Sender
  /** Open runs. They end with the process, unless another process continues them. */
  readonly openRuns: Map<Endable, OpenRun>
  /** Everything that must know when its run or the process ends. */
  readonly leavers: Set<Leaver>
  /** Absent in a Recorder: its handles pass on what they were created with. */
  readonly carrying: Carrying | undefined
  /** Values that all copies of an integration share, by name. */
  readonly shared: Map<string, unknown>
  /** Delivers synchronously, at most for this time. */
  readonly deliverNow: (timeoutMs: number) => void
  /** Never throws and never waits. Undefined if the event was dropped. */
  readonly record: (scope: RunScope | undefined, draft: Draft | (() => Draft)) => string | undefined
  /** `isLate`: the score comes from outside the run's recorder, so its event has no number. */
  readonly score: (
    scope: RunScope,
    name: unknown,
    value: unknown,
    given: unknown,
    isLate?: boolean,
  ) => string | undefined
  /** MAC under the current API key, in hex. Rejects if the host's key function rejects. */
  readonly sign: (text: string) => Promise<string>
  /** Absent in a Recorder. */
  control?: ControlBeside
  /** Set by the first integration that records a model. */
  asked?: AskedBefore
  /** Set by the first integration that may call a model in the background. */
  background?: Background
  /** Set when the first guard is loaded. */
  hashInput?: HashInput
  /** Called with each event before masking, for detectors. */
  readonly observers: Set<Observer>
  /** Resolves when the spool, if any, has returned its stored events. */
  readonly opened: Promise<unknown>
}

/** Guards, prompts and issue records, as the rest of a client knows them. */
export interface ControlBeside {
  readonly hasQueued: boolean
  /** Resolves when the spool, if any, has returned its stored records. */
  readonly opened: Promise<unknown> | undefined
  report(scope: RunScope | undefined, report: IssueReport): void
  flush(timeoutMs: number): Promise<void>
  leave(): Promise<void>
  close(): void
}

/** An input with its hash. A reader of the masked input can check the hash (guard/seal.ts). */
export interface Hashed {
  /** Null if the input has no hash. */
  readonly inputHash: string | null
  /** Seals by JSON Pointer; null if nothing is sealed. */
  readonly inputSeals: Readonly<Record<string, string>> | null
}

export type HashInput = (toolName: string, input: Readonly<Record<string, unknown>> | null) => Hashed

/** What the end of the process does with an open run. */
export interface Endable {
  fail(status: 'FAILED' | 'CANCELLED', failure: Failure): void
}

/** A call that must know when its run or the process ends: it may wait for a person, or its answer may still stream. */
export interface Leaver {
  /** The run of a call that waits for a person now. Otherwise absent. */
  readonly scope?: RunScope
  /** @param ended absent: leave in any case; else only if the call belongs to this run. */
  leave(reason: 'run_ended' | 'process_ended' | 'handed_over', ended?: RunScope): void
}

/** `at`: when the last call ended in the background. */
export type EndLate = (failure?: Failure, isCancelled?: boolean, at?: number) => Promise<unknown> | void

/** Model calls that go on after their run returned. */
export interface Background {
  /** Calls `end` when no model call of a returned run is under way. Resolves when the host may continue. Undefined: end the run now. */
  endWhenQuiet(
    run: Endable,
    scope: RunScope,
    result: unknown,
    isAwaited: boolean,
    end: EndLate,
  ): Promise<unknown> | undefined
  /** Resolves when each returned run has ended or is known to continue. */
  untilKnown(timeoutMs: number): Promise<void>
}

/** Calls that a model's answer asked for, as the integrations track them. */
export interface AskedBefore {
  /** A guard begins a call. With a `problem`, it must not run. */
  begin(state: RunState, toolName: string, id: string | undefined, input: unknown): Asked | undefined
  refused(asked: Asked, message: string): void
  /** The outcome of a run that ends while a person decides about a call in the host's own framework. */
  waiting(scope: RunScope): Draft | undefined
  /** The context of the model call that asked for the call. */
  askedIn(state: RunState, id: string | undefined): Context | undefined
  /** Resolves when the model's answer that contains this call has ended. */
  whole(state: RunState | undefined, id: string | undefined): Promise<unknown> | undefined
}

export interface Asked {
  readonly id: string | undefined
  readonly name: string
  readonly raw: string | undefined
  readonly problem: 'cut' | 'unreadable' | undefined
  /** Anthropic's helpers continue without the answer to this call. */
  readonly isPaused?: boolean
}

/** Call it before the run's outcome is recorded, so that the events of the calls precede the outcome. */
export function leaveCalls({ leavers }: Core, scope: RunScope, reason: 'run_ended' | 'handed_over'): void {
  scope.hasEnded = true
  for (const leaver of leavers) leaver.leave(reason, scope)
}

/** `started`: the run comes from `startRun` and may end in another process. */
export type OpenRun = 'own' | 'started'

const HAND_OVER_MS = 1_000

/** Stands in for a part that could not be loaded. */
const FAILED: Writing & Choosing = { payload: () => '{"masked":"[masked:error]"}', text: () => '[masked:error]' }

export type Observer = (scope: RunScope, draft: Draft) => void

export function createCore(hostOptions: TachoOptions, runtime: Runtime, beyond: Beyond = {}): Core {
  const options = plainOptions(hostOptions)
  const ids = createIds(runtime)
  const { settings, apiKey, problems } = resolveOptions(options, environment(), ids.uuid, !hostProcess)
  const { onDiagnostic } = options
  const listener = typeof onDiagnostic === 'function' ? onDiagnostic : undefined
  const diagnostics = createDiagnostics(listener, runtime)
  // One message for all faults: without a listener, each code is shown only once.
  if (problems.length > 0) diagnostics.report('error', 'invalid_option', problems.join(' '))
  const fetch = typeof options.fetch === 'function' ? options.fetch : runtime.fetch
  // A custom fetch of the host gets a body that any fetch accepts.
  const asBody = (fetch === hostRuntime.fetch && beyond.streamed) || inOnePiece
  const send: Fetch = (url, init) => outside(() => untraced(() => fetch(url, asBody(init))))
  const ends = new Set<() => void>()
  const isNode = hostProcess !== undefined
  const connection = { baseUrl: settings.baseUrl, fetch: send, timer: runtime.timer, isNode, ends }
  let rotating: RotatingKey | undefined
  /** Undefined for a fixed key. */
  const rotatingKey = async (): Promise<RotatingKey | undefined> => {
    if (typeof apiKey === 'string') return undefined
    const { createRotatingKey } = await import('./delivery/rotating-key.ts')
    return (rotating ??= createRotatingKey(apiKey, runtime))
  }
  // A failed import is tried again with the next request.
  const delivery = () => import('./delivery/delivery.ts')
  const endRequests = () => ends.forEach(attempt)
  const request: Request = async (...call) => {
    const stop = hostProcess?.watch(endRequests, settings.flushTimeoutMs, call[2])
    try {
      const { sendRequest } = await delivery()
      const act = (key: string) => sendRequest({ ...connection, apiKey: () => key }, ...call)
      const keys = await rotatingKey()
      return await (keys ? keys.send(act, call[2].timeoutMs) : act(apiKey as string))
    } catch {
      return { kind: 'no-reply', reason: 'network', message: 'the SDK failed' }
    } finally {
      stop?.()
    }
  }
  const context = createContext()
  let written = hostProcess && {
    ...(beyond.createWriting ?? hostProcess.createWriting)(settings, diagnostics),
    metadata: hostProcess.metadataOf,
  }
  const writing = () => written ?? FAILED
  const capturePayload = createPayloadCapture(settings, writing)
  const released = Object.entries(settings.released)
  const deliver: Deliver = async (batch) => (await delivery()).sendBatch(request, batch, settings, runtime, diagnostics)
  const ofEvents = { noun: 'events', maxBatch: LIMITS.batchEvents }
  const sender = new Sender({ ...settings, ...ofEvents }, deliver, runtime, diagnostics)
  const prepared = written ? undefined : prepare()
  const observers = new Set<Observer>()
  // Usage before the run's first guarded call counts too.
  const carrying = beyond.carrying?.({ observers, runtime })
  /** Until this time, the flush of an earlier call also delivers the next events: see `handOver`. */
  let handsOverUntil = -Infinity
  if (!settings.enabled) sender.close('disabled')

  /** Never throws. An event counts as failed if its draft cannot be read: getters of the host's values can throw. */
  function record(scope: RunScope | undefined, eventDraft: Draft | (() => Draft)): string | undefined {
    diagnostics.count('recorded')
    if (!scope) {
      diagnostics.report('warning', 'no_run', 'An event outside a run was dropped.')
      diagnostics.drop('no_run')
      return undefined
    }
    const { recorder } = scope
    let number = 0
    try {
      const draft = typeof eventDraft === 'function' ? eventDraft() : eventDraft
      for (const observe of observers) attempt(() => observe(scope, draft))
      if (!scope.isSampled && !PROTECTED_TYPES.has(draft.type)) {
        diagnostics.drop('sampled')
        return undefined
      }
      const { spanId } = draft
      const span = draft.span ?? (spanId === undefined ? spanOf(scope) : { ...spanOf(scope), spanId })
      // The service stores a repeated event id once. If the host sets the id, give no number: a second number would
      // look lost.
      if (draft.eventId === undefined) number = ++recorder.count
      const event = makeEvent(
        { ...draft, type: String(draft.type), label: String(draft.label) },
        {
          scope,
          span,
          timestamp: timeOf(draft.at),
          payload: capturePayload(annotated(draft.payload, scope, span, released), draft.type),
          sequence: sender.nextSequence(),
          number,
          labelOf: (label) => writing().text(label),
        },
        ids,
      )
      // Custom masking is the host's function: run it now, within the host's record call.
      if (settings.masking.custom && written) void event.written
      if (!sender.add(event)) return undefined
      if (settings.waitUntil && runtime.now() >= handsOverUntil) handOver(settings.waitUntil)
      return event.id
    } catch (error) {
      diagnostics.report('error', 'record_failed', `An event could not be recorded: ${nameOf(error)}.`)
      diagnostics.drop('failed')
      if (number === 0) recorder.count++
      noteDrop(recorder, 'failed', runtime.now())
      return undefined
    }
  }

  function score(scope: RunScope, name: unknown, value: unknown, details: unknown, isLate = false): string | undefined {
    const scoreDraft = scoreOf(name, value, details)
    if ('problem' in scoreDraft) {
      diagnostics.report('warning', 'invalid_score', `A score was left out: ${scoreDraft.problem}.`)
      return undefined
    }
    noteUnknown(diagnostics, 'A score', scoreDraft.details, DETAILS)
    const eventId = scoreDraft.id ?? (isLate ? ids.uuid() : undefined)
    return record(scope, { type: 'SCORE', label: name as string, payload: scoreDraft.payload, eventId })
  }

  /** In browsers and edge workers, events wait until masking is loaded. */
  async function prepare(): Promise<void> {
    sender.hold()
    try {
      const [{ createWriting }, { metadataOf }] = await Promise.all([
        import('./recording/writing.ts'),
        import('./recording/metadata.ts'),
      ])
      written = { ...createWriting(settings, diagnostics), metadata: metadataOf }
    } catch {
      diagnostics.report('error', 'masking_failed', 'A part of the SDK is missing: payloads are dropped.')
    }
    sender.resume()
  }

  function timeOf(at: Date | number | undefined): number {
    const time = Math.round(Number(at ?? runtime.now()))
    return Number.isSafeInteger(time) ? time : runtime.now()
  }

  function spanOf(scope: RunScope): Span {
    const current = context.getStore()
    return current?.scope === scope ? current.span : scope.span
  }

  /** The record calls before a flush share one promise. */
  function handOver(waitUntil: (promise: Promise<unknown>) => void): void {
    handsOverUntil = runtime.now() + HAND_OVER_MS
    const delivered = new Promise<void>((resolve) => runtime.soon(resolve)).then(() => {
      handsOverUntil = -Infinity
      return sender.flush(settings.flushTimeoutMs)
    })
    attempt(() => waitUntil(delivered))
  }

  const { spool } = settings
  const spooled =
    spool &&
    settings.enabled &&
    (beyond.spoolEvents?.(spool, sender, { settings, runtime, ids, diagnostics }) ??
      diagnostics.report('error', 'spool_failed', 'The spool cannot be used here.'))
  const opened = Promise.all([prepared, spooled]).then(() => writing().isChecked)
  const sign = async (text: string) => {
    const key = (await (await rotatingKey())?.get(settings.requestTimeoutMs)) ?? (apiKey as string)
    return beyond.hmac?.(key, text) ?? ''
  }
  const deliverNow = (timeoutMs: number) => {
    // Deliver in another process only without a custom fetch, which that process would not have.
    const key = typeof apiKey === 'string' ? apiKey : rotating?.known
    if (key && fetch === hostRuntime.fetch) hostProcess?.deliverNow(sender, { ...settings, apiKey: key, timeoutMs })
  }
  const parts = {
    options: { ...options, apiKey: undefined },
    settings,
    runtime,
    ids,
    request,
    endRequests,
    sign,
    diagnostics,
    writing,
    prepared,
    capturePayload,
    context,
    sender,
    openRuns: new Map(),
    leavers: new Set<Leaver>(),
    carrying,
    shared: new Map<string, unknown>(),
    deliverNow,
  }
  return { ...parts, record, score, observers, opened }
}

function annotated(
  payload: Payload | undefined,
  { annotations, trace: handedOver }: RunScope,
  { marks }: Span,
  released: readonly [string, string][],
): Payload | undefined {
  const trace = activeTrace() ?? handedOver
  if (annotations.size === 0 && !marks && !trace && released.length === 0) return payload
  const { traceId, spanId: traceSpanId } = trace ?? {}
  return joined(Object.fromEntries([...released, ...annotations]), marks, trace && { traceId, traceSpanId }, payload)
}

/** A copy, so that no getter of the host runs later. Unreadable options disable the client. */
function plainOptions(hostOptions: TachoOptions): TachoOptions {
  return readSafely(() => ({ ...hostOptions }), { enabled: false })
}

/** Runs `act` and ignores its error, which the host's function handles itself. */
export function attempt(act: () => void): void {
  readSafely(act, undefined)
}

export function environment(): Record<string, string | undefined> {
  type Host = { process?: { env?: Record<string, string | undefined> } }
  return readSafely(() => (globalThis as Host).process?.env ?? {}, {})
}
