/** Everything one client consists of, made once from its options. Holds no key: `request` does. */
import { createContext, type CurrentContext, type RunScope, type Span } from './context.ts'
import { createDiagnostics, type Diagnostics } from './diagnostics.ts'
import { makeEvent, PRECIOUS, type Draft, type Payload } from './event.ts'
import { createRequest, type Request } from './http.ts'
import { createMask, type Mask } from './mask.ts'
import { resolveOptions, type Settings, type TachoOptions } from './options.ts'
import type { Runtime } from './runtime.ts'
import { Sender } from './sender.ts'
import { sha256 } from './sha256.ts'
import { createIds, type Ids } from './uuid.ts'

export interface Core {
  readonly settings: Settings
  readonly runtime: Runtime
  readonly ids: Ids
  /** Sends one request with the key. */
  readonly request: Request
  readonly diagnostics: Diagnostics
  readonly mask: Mask
  readonly context: CurrentContext
  readonly sender: Sender
  /** Records one event of a run. Never throws and never waits. Returns the event's id, undefined when it is dropped. */
  readonly record: (scope: RunScope | undefined, draft: Draft) => string | undefined
  /** A digest of address and key: what is kept on disk for one environment is not used for another. */
  readonly identity: () => Promise<string>
  /** Called with each event that is recorded, before masking, for detectors. */
  readonly observers: Set<Observer>
}

export type Observer = (scope: RunScope, draft: Draft) => void

export function createCore(options: TachoOptions, host: Runtime): Core {
  const runtime = typeof options.fetch === 'function' ? { ...host, fetch: options.fetch } : host
  const ids = createIds(runtime)
  const { settings, apiKey, problems } = resolveOptions(options, environment(), ids.uuid)
  const listener = typeof options.onDiagnostic === 'function' ? options.onDiagnostic : undefined
  const diagnostics = createDiagnostics(listener, runtime)
  for (const problem of problems) diagnostics.report('error', 'invalid_option', problem)
  const request = createRequest({ baseUrl: settings.baseUrl, apiKey, fetch: runtime.fetch }, runtime)
  const context = createContext()
  const sender = new Sender(settings, request, runtime, diagnostics)
  if (!settings.enabled) sender.close('disabled')
  const mask = createMask(settings.masking)
  const observers = new Set<Observer>()

  function record(scope: RunScope | undefined, draft: Draft): string | undefined {
    diagnostics.count('recorded')
    if (!scope) {
      diagnostics.report('warning', 'no_run', 'An event was recorded outside of a run and dropped.')
      diagnostics.drop('no_run')
      return undefined
    }
    try {
      for (const observe of observers) observe(scope, draft)
      if (!scope.isSampled && !PRECIOUS.has(draft.type)) {
        diagnostics.drop('sampled')
        return undefined
      }
      const payloadJson = mask.json(JSON.stringify(annotated(draft.payload, scope)))
      const timestamp = Number(draft.timestamp ?? runtime.now())
      const span = draft.span ?? spanOf(scope)
      const sequence = sender.nextSequence()
      const event = makeEvent(draft, { scope, span, timestamp, payloadJson, sequence }, ids)
      sender.add(event)
      return event.eventId
    } catch {
      diagnostics.drop('failed')
      return undefined
    }
  }

  function spanOf(scope: RunScope): Span {
    const current = context.getStore()
    return current?.scope === scope ? current.span : scope.span
  }

  const identity = () => sha256(`${settings.baseUrl}\n${apiKey}`)
  return { settings, runtime, ids, request, identity, diagnostics, mask, context, sender, record, observers }
}

function annotated(payload: Payload | undefined, { annotations }: RunScope): Payload {
  return annotations.size === 0 ? (payload ?? {}) : { ...Object.fromEntries(annotations), ...payload }
}

/** Variables of the environment, where the runtime has any. */
function environment(): Record<string, string | undefined> {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {}
  } catch {
    return {}
  }
}
