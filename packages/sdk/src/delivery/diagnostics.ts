import type { Runtime } from './runtime.ts'
import { cutText } from '../recording/text.ts'

export type DiagnosticLevel = 'info' | 'warning' | 'error'

export interface Diagnostic {
  readonly level: DiagnosticLevel
  /** Stable; docs/sdk/delivery.md lists them. */
  readonly code: string
  /** Never holds a key or recorded content. */
  readonly message: string
  /** Number of occurrences since the last report. */
  readonly count: number
}

export type OnDiagnostic = (diagnostic: Diagnostic) => void

/** Why an event never reached the service. */
export type DropReason =
  | 'queue_full'
  | 'disabled'
  | 'closed'
  | 'unauthorized'
  | 'forbidden'
  | 'refused'
  | 'sampled'
  | 'no_run'
  | 'failed'

/** Result of `flush`. */
export interface FlushResult {
  /** Events the service accepted. */
  readonly sent: number
  readonly rejected: number
  readonly dropped: number
  /** Events still queued when the time was up. */
  readonly left: number
}

/** Always: recorded = accepted + rejected + every `dropped` + queued. */
export interface Counters {
  /** Record calls, and events recovered from the spool. */
  readonly recorded: number
  /** Events that an earlier process left in the spool; counted in `recorded` too. */
  readonly recovered: number
  readonly accepted: number
  readonly rejected: number
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>
  /** Events in the queue or in a request. */
  readonly queued: number
  /** UTF-8 bytes of the queued events. */
  readonly queuedBytes: number
  /** Number of repeated sends of events. */
  readonly retried: number
  /** Payloads that were shortened. */
  readonly shortened: number
  readonly requests: number
  readonly failedRequests: number
}

/** A code that recurs is reported at once, then at most once in this interval. */
const REPEAT_MS = 10_000

/** @internal */
export interface Diagnostics {
  report(level: DiagnosticLevel, code: string, message: string): void
  count(name: Exclude<keyof Counters, 'dropped' | 'queued' | 'queuedBytes'>, by?: number): void
  drop(reason: DropReason, by?: number): void
  counters(queue: { queued: number; queuedBytes: number }): Counters
  /** Headers by which the next delivery reports the state of the spool. */
  headers?: Record<string, string> | undefined
}

/** @internal Without a host listener, each code is written to the console once, except those of level `info`. */
export function createDiagnostics(onDiagnostic: OnDiagnostic | undefined, { now }: Pick<Runtime, 'now'>): Diagnostics {
  const received = { recorded: 0, recovered: 0, shortened: 0 }
  const delivered = { accepted: 0, rejected: 0, retried: 0, requests: 0, failedRequests: 0 }
  const counts = { ...received, ...delivered }
  const dropped = new Map<DropReason, number>()
  const reported = new Map<string, { at: number; since: number }>()

  return {
    report(level, code, message) {
      const last = reported.get(code)
      const time = now()
      if (last && (!onDiagnostic || (time - last.at < REPEAT_MS && time >= last.at))) {
        last.since++
        return
      }
      reported.set(code, { at: time, since: 0 })
      try {
        if (onDiagnostic) onDiagnostic({ level, code, message, count: (last?.since ?? 0) + 1 })
        else if (level !== 'info') console.warn(`tacho: ${message}`)
      } catch {
        // An error in the host's listener must not break recording.
      }
    },
    count(name, by = 1) {
      counts[name] += by
    },
    drop(reason, by = 1) {
      dropped.set(reason, (dropped.get(reason) ?? 0) + by)
    },
    counters: (queue) => ({ ...counts, ...queue, dropped: Object.fromEntries(dropped) }),
  }
}

/** @internal Reports an unknown option: a misspelt one would silently have no effect. */
export function noteUnknown(
  { report }: Pick<Diagnostics, 'report'>,
  of: string,
  diagnosticFields: object,
  names: readonly string[],
) {
  const unknown = Object.keys(diagnosticFields).find((name) => !names.includes(name))
  if (unknown) report('warning', 'invalid_option', `${of} has no option ${cutText(unknown, 40)}.`)
}
