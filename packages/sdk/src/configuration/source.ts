/**
 * Keeps the runtime configuration of the environment: one frozen object, always replaced whole.
 *
 *   idle --first use--> loading --200, all checked / 304--> waiting --interval, with jitter--> loading …
 *                          |                                   ^
 *                          +--no answer, a wrong one, 429, 5xx-+   after a backoff; keeps the loaded configuration
 *                          +--401, 403--> stopped                  keeps the loaded configuration
 *   any --close--> stopped
 *
 * If the service supports it, a long poll also waits for changes (`#watch`).
 *
 * A timer does not prove freshness: it stops in a frozen process, a snapshot or a sleeping laptop. So if a refresh is
 * overdue, a call first refreshes, within its wait (`fresh`).
 */
import type { Core } from '../core.ts'
import type { HttpResult } from '../delivery/http.ts'
import { waitMs } from '../delivery/retry.ts'
import type { Timer } from '../delivery/runtime.ts'
import type { RunScope } from '../recording/context.ts'
import { isSampled } from '../recording/sampling.ts'
import {
  checkConfiguration,
  type Configuration,
  type ConfigurationOptions,
  type DeployedPrompt,
} from './configuration.ts'
import type { ConfigurationCache } from './disk-cache.ts'
import { readsInput } from './host-input.ts'

export type ConfigurationListener = (current: Configuration, previous: Configuration | null) => void

/** The current configuration, and how fresh it is. */
export interface ConfigurationState {
  readonly current: Configuration | null
  /** Milliseconds since the service last confirmed it; null if nothing is loaded. */
  readonly ageMs: number | null
  /** `disk`: from the cache file, not yet confirmed by the service. */
  readonly source: 'service' | 'disk' | null
}

const REFRESH_MS = 30_000
const REFRESH_MIN_MS = 1_000
const REFRESH_MAX_MS = 86_400_000
const OLD_AFTER_MS = 300_000
const LEAVE_MS = 1_000
/** Delay of the first long poll. A process that ends earlier asks only once. */
const WATCH_AFTER_MS = 1_000
/** After this many waits that ended at once, the pause between them is about 30 seconds and grows no more. */
const ENDED_WAITS_MAX = 5
/** Delay that a timer can have on a busy machine. A refresh is late only after it. */
const LATE_MS = 1_000
/** Every HTTP client can send these characters in a header. */
const HEADER_TEXT = /^[\x20-\x7e]+$/
/** 500 policies and 4 MiB of prompts, even if every character is escaped. */
const REPLY_BYTES_MAX = 32 * 1_048_576

/** @internal */
export class ConfigurationSource {
  readonly #core: Core
  readonly #refreshMs: number
  readonly #cache: ConfigurationCache | undefined
  readonly #cacheMaxAgeMs: number
  readonly #cacheFreshMs: number
  readonly #oldAfterMs: number
  readonly #listeners = new Set<ConfigurationListener>()
  #current: Configuration | null = null
  #source: ConfigurationState['source'] = null
  #confirmedAt = 0
  #etag: string | null = null
  #failures = 0
  #retryAfter: string | null = null
  #isStopped = false
  #kept: Promise<boolean> | undefined
  #first: Promise<void> | undefined
  #loading: Promise<boolean> | undefined
  #timer: Timer | undefined
  /** Clock time at which the timer should refresh. */
  #dueAt = Infinity
  #loadingSince = 0
  #isWatching = false
  #wait: AbortController | undefined
  /** Number of consecutive waits that ended immediately. */
  #endedWaits = 0
  /** True when the refresh is overdue. A timer that is on time delays no call. */
  #isLate = false
  #isOldReported = false
  /** Whether the service counts this client as one that reads its configuration. */
  isCounted = false

  constructor(core: Core, options: ConfigurationOptions, cache?: ConfigurationCache) {
    const { refreshMs = REFRESH_MS, cacheMaxAgeMs = Infinity, cacheFreshMs = 0, oldAfterMs = OLD_AFTER_MS } = options
    this.#core = core
    const isUsable = typeof refreshMs === 'number' && refreshMs >= REFRESH_MIN_MS && refreshMs <= REFRESH_MAX_MS
    if (!isUsable) {
      const message = `configuration.refreshMs must be a number from ${REFRESH_MIN_MS} to ${REFRESH_MAX_MS}.`
      core.diagnostics.report('error', 'invalid_option', message)
    }
    this.#refreshMs = isUsable ? refreshMs : REFRESH_MS
    this.#cache = cache
    this.#cacheMaxAgeMs = cacheMaxAgeMs
    this.#cacheFreshMs = cacheFreshMs
    this.#oldAfterMs = oldAfterMs
    this.#isStopped = !core.settings.enabled
  }

  get state(): ConfigurationState {
    const ageMs = this.#current ? Math.max(0, this.#core.runtime.now() - this.#confirmedAt) : null
    return { current: this.#current, ageMs, source: this.#source }
  }

  /** The version for the run's session, or for the run if it has no session. Outside runs: the version in force. */
  promptOf(name: string, scope: RunScope | undefined): DeployedPrompt | undefined {
    const prompt = this.#current?.prompts.find((one) => one.name === name)
    const share = prompt?.share
    const session = scope?.sessionId ?? scope?.runId
    const isShared = share && session !== undefined && isSampled(`${share.salt}:${session}`, share.percent / 100)
    return isShared ? { ...prompt, ...share } : prompt
  }

  /** Does nothing if already started. */
  start(): Promise<void> {
    return (this.#first ??= this.#startOnce())
  }

  /** At most `timeoutMs`. True if a configuration is loaded. */
  async ready(timeoutMs: number): Promise<boolean> {
    // The first load may have ended with the request that began it, so start it again.
    const started = this.#core.settings.isBound ? undefined : this.start()
    if (this.#current || this.#isStopped) return this.#current !== null
    // `timeoutMs` is for the service only. On a busy machine, it could pass before the file is read.
    await this.#kept?.catch(() => false)
    await this.#atMost(timeoutMs, started ?? this.refresh())
    return this.#current !== null
  }

  /**
   * Waits, before a call is judged, for the first configuration, or for a newer one if a refresh is due. In an outage,
   * one call waits for each attempt, because the next attempt is due later.
   */
  async fresh(timeoutMs: number): Promise<void> {
    if (!this.#current) return void (await this.ready(timeoutMs))
    const { now } = this.#core.runtime
    const since = this.#loading && !this.#core.settings.isBound ? this.#loadingSince : now()
    await this.#atMost(Math.max(0, since + timeoutMs - now()), this.refresh())
  }

  /** Reports that a prompt is the fallback because nothing is loaded yet, or that it has no value for `variable`. */
  missed(name: string, variable?: string): void {
    void this.start()
    if (this.#isStopped) return
    const { diagnostics } = this.#core
    if (variable !== undefined) {
      diagnostics.report('warning', 'prompt_variable_missing', `Nothing fills {{${variable}}} of the prompt ${name}.`)
    } else if (!this.#current) {
      const message = `The prompt ${name} is from the code: nothing is loaded yet. Await configuration.ready() first.`
      diagnostics.report('warning', 'prompt_fallback', message)
    }
  }

  /** True if a call must not be judged before `fresh`. */
  get isDue(): boolean {
    if (!this.#current) return true
    const isAwaited = this.#loading && !this.#core.settings.isBound
    return !this.#isStopped && (isAwaited ? this.#isLate : this.#isOverdue)
  }

  get #isOverdue(): boolean {
    return this.#core.runtime.now() > this.#dueAt + LATE_MS
  }

  /** Null unless the policies are older than the limit. Reports old policies once, until the service confirms them. */
  get oldMs(): number | null {
    const { ageMs } = this.state
    if (ageMs === null || ageMs <= this.#oldAfterMs) {
      this.#isOldReported = false
      return null
    }
    if (!this.#isOldReported) {
      this.#isOldReported = true
      const message = `Calls are judged by policies of ${Math.round(ageMs / 1_000)} s ago: the service could not confirm them since.`
      this.#core.diagnostics.report('warning', 'policies_old', message)
    }
    return ageMs
  }

  /** Waits at most `timeoutMs`. Without an answer, the loaded configuration stays in use. */
  confirm(timeoutMs: number): Promise<void> {
    return this.#atMost(timeoutMs, this.refresh())
  }

  /** True if the service confirmed the current configuration or sent a newer one. */
  refresh(): Promise<boolean> {
    if (this.#isStopped) return Promise.resolve(false)
    // A load of another request may never end.
    if (!this.#loading || this.#core.settings.isBound) {
      this.#loadingSince = this.#core.runtime.now()
      this.#isLate = this.#isOverdue
      this.#loading = this.#loadAndSchedule()
    }
    return this.#loading
  }

  /** Returns a function that removes the listener. */
  onChange(listener: ConfigurationListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#wait?.abort()
  }

  async #startOnce(): Promise<void> {
    this.#kept = this.#readKept()
    if (await this.#kept) return this.#schedule()
    await this.refresh()
  }

  /** Reads the cached configuration. True if it is fresh. */
  async #readKept(): Promise<boolean> {
    const cachedConfiguration = await this.#cache?.read()
    // An age that is not a number counts as too old.
    const isYoung =
      cachedConfiguration && this.#core.runtime.now() - cachedConfiguration.confirmedAt <= this.#cacheMaxAgeMs
    if (isYoung && !this.#current) {
      const checked = await checkConfiguration(cachedConfiguration.body)
      if (checked.ok) {
        this.#etag = cachedConfiguration.etag
        this.#confirmedAt = cachedConfiguration.confirmedAt
        this.#swap(checked.configuration, 'disk')
        // If the clock was set back, no file is fresh.
        const ageMs = this.#core.runtime.now() - cachedConfiguration.confirmedAt
        return ageMs >= 0 && ageMs < this.#cacheFreshMs
      }
    }
    return false
  }

  async #loadAndSchedule(): Promise<boolean> {
    try {
      return await this.#load()
    } catch {
      // A host without WebCrypto cannot check hashes, so it gets no configuration.
      return this.#fail('its hashes could not be checked', null)
    } finally {
      this.#loading = undefined
      this.#schedule()
    }
  }

  async #load(): Promise<boolean> {
    const reply = await this.#ask({}, this.#core.settings.requestTimeoutMs)
    return this.#take(reply)
  }

  async #take(reply: HttpResult, watchAfterMs?: number): Promise<boolean> {
    const { runtime, diagnostics } = this.#core
    if (reply.kind === 'no-reply') return this.#fail(reply.message, null)
    const wait = Number(reply.header('x-tacho-wait'))
    if (wait > 0) this.#watch(wait, watchAfterMs)
    // With a file, the next process continues as the same client.
    this.isCounted = !this.#cache && (reply.status === 200 || reply.status === 304)
    if (reply.status === 304 && this.#current) {
      this.#confirm()
      return true
    }
    // "Not modified" means nothing to a client without a configuration: request it in full next time.
    if (reply.status === 304) this.#etag = null
    if (reply.status === 401 || reply.status === 403) {
      this.#isStopped = true
      const scopes =
        reply.status === 401
          ? 'The API key is unknown, expired or revoked.'
          : 'The key needs the scopes config:read and policies:read.'
      const message = `The service refused the configuration: ${reply.status}. ${scopes}`
      diagnostics.report('error', 'configuration_refused', message)
      return false
    }
    if (reply.status !== 200) return this.#fail(`status ${reply.status}`, reply.header('retry-after'))
    const checked = await checkConfiguration(reply.json, this.#current)
    if (!checked.ok) return this.#fail(checked.problem, null)
    this.#etag = reply.header('etag')
    this.#confirmedAt = runtime.now()
    this.#failures = 0
    if (checked.configuration.revision !== this.#current?.revision) this.#swap(checked.configuration, 'service')
    this.#source = 'service'
    void this.#cache?.write({ etag: this.#etag, confirmedAt: this.#confirmedAt, body: checked.configuration })
    return true
  }

  /**
   * Long-polls if the service supports it: the service answers as soon as the configuration changes. The timer
   * continues too, for a frozen process or a lost connection. Not in Bun and Deno, which do not report when only the
   * poll keeps the process running.
   */
  #watch(seconds: number, afterMs = WATCH_AFTER_MS): void {
    const { runtime, settings } = this.#core
    if (this.#isWatching || settings.isBound || 'Bun' in globalThis || 'Deno' in globalThis) return
    this.#isWatching = true
    runtime.timer(afterMs, async () => {
      const since = runtime.now()
      const reply = this.#isStopped
        ? undefined
        : await this.#ask({}, seconds * 1_000 + settings.requestTimeoutMs, seconds)
      this.#isWatching = false
      const isEarly = runtime.now() - since < WATCH_AFTER_MS
      if (reply?.kind === 'reply') {
        // Do not poll again at once if the service answered without waiting.
        await this.#take(reply, isEarly && reply.status === 304 ? undefined : 0)
      } else if (this.#isStopped) return
      else if (this.#wait?.signal.aborted) {
        // The wait ended because it seemed to be all that kept the process running. The process goes on, so wait again.
        this.#endedWaits = isEarly ? Math.min(this.#endedWaits + 1, ENDED_WAITS_MAX) : 0
        return this.#watch(seconds, WATCH_AFTER_MS * 2 ** this.#endedWaits)
      }
      // A lost poll: ask again after a backoff. The answer says whether to poll again.
      else this.#failures++
      this.#schedule()
    })
  }

  #ask(more: Record<string, string>, timeoutMs: number, seconds = 0): Promise<HttpResult> {
    const { request, settings } = this.#core
    const headers = {
      ...(this.#etag !== null && { 'if-none-match': this.#etag }),
      // Tells operators which client has which revision. Other characters cannot be sent in a header.
      ...(HEADER_TEXT.test(settings.clientId) && { 'x-service-client-id': settings.clientId, ...more }),
    }
    const asked = { headers, timeoutMs, maxReplyBytes: REPLY_BYTES_MAX }
    if (seconds === 0) return request('GET', '/runtime-config', asked)
    const wait = (this.#wait = new AbortController())
    return request('GET', `/runtime-config?wait=${seconds}`, {
      ...asked,
      signal: wait.signal,
      endWait: () => void (readsInput() || wait.abort()),
    })
  }

  /** Reports that the process ends, so that operators do not wait for it. The next refresh revokes this. */
  async leave(): Promise<void> {
    if (!this.isCounted) return
    this.isCounted = false
    await this.#ask({ 'x-tacho-closing': 'true' }, Math.min(LEAVE_MS, this.#core.settings.flushTimeoutMs))
  }

  #confirm(): void {
    this.#failures = 0
    this.#source = 'service'
    this.#confirmedAt = this.#core.runtime.now()
    void this.#cache?.confirm()
  }

  #fail(why: string, retryAfter: string | null): false {
    // The client ended and aborted this request, so it is no failure.
    if (this.#isStopped) return false
    this.#failures++
    this.#retryAfter = retryAfter
    const { settings, diagnostics } = this.#core
    const used = this.#current ? 'the last loaded ones stay in use' : 'fallbacks are used'
    const message = `Could not load prompts and policies from ${settings.baseUrl} (${why}); ${used}.`
    diagnostics.report('warning', 'configuration_unavailable', message)
    return false
  }

  #swap(next: Configuration, source: ConfigurationState['source']): void {
    const previous = this.#current
    this.#current = next
    this.#source = source
    for (const listener of this.#listeners) {
      try {
        listener(next, previous)
      } catch {
        this.#core.diagnostics.report('warning', 'listener_failed', 'A listener of configuration changes threw.')
      }
    }
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#timer?.cancel()
    const { now, random, timer } = this.#core.runtime
    const regular = this.#refreshMs * (0.8 + 0.4 * random())
    const delay = this.#failures === 0 ? regular : waitMs(this.#failures, this.#retryAfter, now(), random())
    this.#dueAt = now() + delay
    this.#timer = timer(delay, () => void this.refresh())
  }

  async #atMost(timeoutMs: number, act: Promise<unknown>): Promise<void> {
    // This timer may keep the process running, because a caller waits for the answer.
    await new Promise<void>((resolve) => {
      const timer = this.#core.runtime.timer(timeoutMs, resolve, true)
      void act.finally(() => {
        timer.cancel()
        resolve()
      })
    })
  }
}
