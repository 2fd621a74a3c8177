import { readSafely } from './recording/json.ts'
import type { ConfigurationOptions } from './configuration/configuration.ts'
import type { OnDiagnostic } from './delivery/diagnostics.ts'
import type { GuardDefaults } from './guard/rules.ts'
import type { MaskingOptions } from './recording/mask.ts'
import { LIMITS } from './limits.ts'
import { cutText, wellFormed } from './recording/text.ts'
import type { Fetch } from './delivery/runtime.ts'

export type Capture = 'full' | 'metadata-only'

export type GivenKey = string | (() => string | Promise<string>)

export interface TachoOptions {
  /**
   * API key with the scope `events:write`, or a function that gives it: it is asked at first use, and again after the service
   * refused the key. Default: TACHO_API_KEY. Without a key, nothing is recorded.
   */
  apiKey?: GivenKey | undefined
  /** Origin of the service. Default: TACHO_URL, else http://localhost:4680. */
  baseUrl?: string | undefined
  /** Stable id of this installation, at most 120 characters. Default: TACHO_CLIENT_ID, else random for each process. */
  clientId?: string | undefined
  /** False records nothing. Default: true. */
  enabled?: boolean | undefined
  /** Agent of runs that name no agent. Default: "agent". */
  agentName?: string | undefined
  /** Agent id of runs that give no id. */
  agentId?: string | undefined
  /** Version of your payload conventions, sent with every event. */
  schemaVersion?: string | undefined
  /**
   * Release of your agent, such as a version or a commit: issues show the first and the last one. At most 100 characters.
   * Default: TACHO_RELEASE.
   */
  release?: string | undefined
  /** `metadata-only` leaves out all content. Default: full. */
  capture?: Capture | undefined
  /** Payload keys that metadata-only keeps in addition to the standard ones. */
  metadataKeys?: readonly string[] | undefined
  /** Rules for masking, applied before an event exists. Default: credentials. */
  masking?: MaskingOptions | undefined
  /** Share of the runs that is recorded, from 0 to 1. Outcomes, policy decisions and scores are always recorded. Default: 1. */
  sampleRate?: number | undefined
  /** Most events in the queue. Default: 20,000. */
  maxQueuedEvents?: number | undefined
  /** Most UTF-8 bytes in the queue. Default: 32 MiB. */
  maxQueuedBytes?: number | undefined
  /** Longest time, in milliseconds, that an event waits for its batch to fill. Default: 1,000. */
  flushIntervalMs?: number | undefined
  /** Timeout of one request including its answer, in milliseconds. Default: 10,000. */
  requestTimeoutMs?: number | undefined
  /** Longest wait of `flush`, and of a process that ends, in milliseconds. Default: 5,000. */
  flushTimeoutMs?: number | undefined
  /** `auto` compresses large batches, unless the service is on this machine. Default: auto. */
  compression?: 'auto' | 'never' | undefined
  /** A folder that keeps events until delivery, so that they survive the end of the process (Node, Bun, Deno). */
  spool?: string | undefined
  /** Deliver queued events on SIGTERM and SIGINT before the process ends. Default: true. */
  flushOnSignals?: boolean | undefined
  /** Keeps a serverless function running until a promise ends. */
  waitUntil?: ((promise: Promise<unknown>) => void) | undefined
  /** How prompts and policies are refreshed and cached. */
  configuration?: ConfigurationOptions | undefined
  /** How guarded calls are decided. */
  guard?: GuardDefaults | undefined
  /** Called when something goes wrong. Without it, the console shows each warning once. */
  onDiagnostic?: OnDiagnostic | undefined
  /** Replaces the global fetch. */
  fetch?: Fetch | undefined
}

/** A Recorder has no guards, prompts and spool. */
export type RecorderOptions = Omit<TachoOptions, 'configuration' | 'guard' | 'spool'>

/** @internal Checked, with every default. Holds no key. */
export interface Settings {
  /** Whether timers and requests may end with the request that began them, as in browsers and edge workers. */
  readonly isBound: boolean
  /** The address of the tape that answers guarded tools in a replay. */
  readonly replay: string | undefined
  readonly enabled: boolean
  readonly baseUrl: string
  readonly clientId: string
  readonly agentName: string
  readonly agentId: string | undefined
  readonly schemaVersion: string | undefined
  /** The payload member with the agent's release; empty if unknown. */
  readonly released: { readonly release?: string }
  readonly capture: Capture
  readonly metadataKeys: ReadonlySet<string>
  readonly masking: MaskingOptions
  readonly sampleRate: number
  readonly maxQueuedEvents: number
  readonly maxQueuedBytes: number
  readonly flushIntervalMs: number
  readonly requestTimeoutMs: number
  readonly flushTimeoutMs: number
  readonly compress: boolean
  readonly spool: string | undefined
  readonly flushOnSignals: boolean
  readonly waitUntil: ((promise: Promise<unknown>) => void) | undefined
}

/** @internal */
export interface Resolved {
  readonly settings: Settings
  readonly apiKey: GivenKey
  /** Faults of the options, one sentence each; those that stop recording come first. */
  readonly problems: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

/** Options that `settings` does not have, or has under another name. */
const OTHER_OPTIONS = ['apiKey', 'release', 'compression', 'configuration', 'guard', 'onDiagnostic', 'fetch']

const MASKING_FLAGS: readonly string[] = ['credentials', 'email', 'cardNumber', 'phone', 'iban']

function isMaskingOption(name: string, value: unknown): boolean {
  if (value === undefined) return true
  if (name === 'keys') return isTexts(value)
  if (name === 'patterns') return Array.isArray(value) && value.every((pattern) => pattern instanceof RegExp)
  if (name === 'custom') return typeof value === 'function'
  return MASKING_FLAGS.includes(name) && typeof value === 'boolean'
}

function isTexts(value: unknown): value is string[] {
  return readSafely(() => Array.isArray(value) && value.every((text) => typeof text === 'string'), false)
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/**
 * @internal Never throws. A faulty option is reported and gets its default; a faulty privacy option gets the strictest
 * choice. Without a usable key or address the client is disabled.
 */
export function resolveOptions(
  options: TachoOptions,
  environment: Environment,
  newId: () => string,
  isBound = false,
): Resolved {
  const problems: string[] = []
  const givenOptions = options as Readonly<Record<string, unknown>>

  function text(name: keyof TachoOptions, maxChars: number): string | undefined {
    const value = givenOptions[name]
    if (typeof value === 'string' && value !== '' && cutText(value, maxChars) === value) return wellFormed(value)
    if (value !== undefined) problems.push(`${name} must be a text of 1 to ${maxChars} characters.`)
    return undefined
  }

  function number(name: keyof TachoOptions, byDefault: number, min: number, max: number): number {
    const value = givenOptions[name] ?? byDefault
    if (typeof value === 'number' && value >= min && value <= max) return value
    problems.push(`${name} must be a number from ${min} to ${max}.`)
    return byDefault
  }

  function choice<T>(name: keyof TachoOptions, choices: readonly T[], fallback: T): T {
    const value = givenOptions[name] ?? choices[0]
    if (choices.includes(value as T)) return value as T
    problems.push(`${name} must be one of ${choices.join(', ')}.`)
    return fallback
  }

  const apiKey = options.apiKey ?? environment['TACHO_API_KEY'] ?? ''
  const hasKey = typeof apiKey === 'function' || (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey))
  if (!hasKey && options.enabled !== false) {
    problems.push('Nothing is recorded: apiKey (or TACHO_API_KEY) must be a key.')
  }
  // A replay's tape replaces any other address, so that a replay records nowhere else.
  const replay = environment['TACHO_REPLAY']
  const base = origin(replay ?? options.baseUrl ?? environment['TACHO_URL'] ?? 'http://localhost:4680')
  if (!base) problems.push('Nothing is recorded: baseUrl (or TACHO_URL) must be an http or https address.')
  const masking = maskingFrom(options.masking)
  if (!masking) problems.push('masking is malformed: only metadata is recorded.')
  const metadataKeys: unknown = options.metadataKeys ?? []
  const hasKeys = isTexts(metadataKeys)
  if (!hasKeys) problems.push('metadataKeys must be a list of texts.')

  const release =
    text('release', LIMITS.releaseChars) ?? cutText(environment['TACHO_RELEASE'] ?? '', LIMITS.releaseChars)
  let { waitUntil } = options
  if (waitUntil !== undefined && typeof waitUntil !== 'function') {
    waitUntil = undefined
    problems.push('waitUntil must be a function.')
  }

  const settings: Settings = {
    isBound,
    replay,
    enabled: choice('enabled', [true, false], false) && hasKey && base !== undefined,
    baseUrl: base?.text ?? '',
    clientId:
      text('clientId', LIMITS.clientIdChars) ??
      cutText(environment['TACHO_CLIENT_ID'] || `sdk-${newId()}`, LIMITS.clientIdChars),
    agentName: text('agentName', LIMITS.textChars) ?? 'agent',
    agentId: text('agentId', LIMITS.textChars),
    schemaVersion: text('schemaVersion', LIMITS.textChars),
    released: release ? { release: wellFormed(release) } : {},
    capture: masking ? choice<Capture>('capture', ['full', 'metadata-only'], 'metadata-only') : 'metadata-only',
    metadataKeys: new Set(hasKeys ? metadataKeys : []),
    masking: masking ?? {},
    sampleRate: number('sampleRate', 1, 0, 1),
    maxQueuedEvents: number('maxQueuedEvents', 20_000, 1, 10_000_000),
    maxQueuedBytes: number('maxQueuedBytes', 32 * 1_048_576, LIMITS.batchBytes, 2 ** 40),
    requestTimeoutMs: number('requestTimeoutMs', 10_000, 1, 600_000),
    flushTimeoutMs: number('flushTimeoutMs', 5_000, 0, 600_000),
    compress: choice('compression', ['auto', 'never'], 'never') === 'auto' && !base?.isLoopback,
    // A replay does not use events on disk.
    spool: replay ? undefined : text('spool', 4_096),
    // The host of a replay follows the agent by its events, and its verdict waits for them.
    flushIntervalMs: replay ? 0 : number('flushIntervalMs', 1_000, 0, 3_600_000),
    flushOnSignals: choice('flushOnSignals', [true, false], true),
    waitUntil,
  }
  for (const name of Object.keys(givenOptions)) {
    const isKnown = Object.hasOwn(settings, name) || OTHER_OPTIONS.includes(name)
    if (!isKnown) problems.push(`Unknown option ${cutText(name, 40)}.`)
  }
  return { settings, apiKey: hasKey ? apiKey : '', problems }
}

function maskingFrom(maskingOption: unknown): MaskingOptions | undefined {
  // Throws for null, which has no entries.
  const isValid = () =>
    typeof maskingOption === 'object' &&
    Object.entries(maskingOption as object).every(([name, value]) => isMaskingOption(name, value))
  return readSafely(() => maskingOption === undefined || isValid(), false) ? (maskingOption ?? {}) : undefined
}

function origin(value: unknown): { text: string; isLoopback: boolean } | undefined {
  return readSafely(() => {
    const url = new URL(value as string)
    if (!/^https?:$/.test(url.protocol)) return undefined
    // A proxy may have a path before /openapi/v1.
    return { text: `${url.origin}${url.pathname.replace(/\/+$/, '')}`, isLoopback: LOOPBACK.test(url.hostname) }
  }, undefined)
}
