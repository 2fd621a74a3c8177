import { whole } from '#whole'
import type { ConfigurationListener, ConfigurationState } from './configuration/source.ts'
import type { RunScope } from './recording/context.ts'
import type { Control, ControlOptions } from './control.ts'
import { attempt, type ControlBeside, type Core } from './core.ts'
import type { IssueRecords, IssueReport } from './delivery/issue-records.ts'

const READY_MS = 5_000
const NOTHING: ConfigurationState = { current: null, ageMs: null, source: null }

/** @internal */
export class LazyControl implements ControlBeside {
  readonly #core: Core
  readonly #options: ControlOptions
  #loading: Promise<Control> | undefined
  #isClosed = false
  /** Accepts issue reports at once, because a process may end at any time. */
  readonly #own: IssueRecords | undefined
  /** Undefined until the first use has loaded it. */
  loaded: Control | undefined

  constructor(core: Core, options: ControlOptions) {
    this.#core = core
    this.#options = options
    this.#own = whole?.openIssues(core)
  }

  get issues(): IssueRecords | undefined {
    return this.#own ?? this.loaded?.issues
  }

  /** If loading fails, the next call tries again. */
  load(): Promise<Control> {
    return (this.#loading ??= Promise.all([import('./control.ts'), this.#core.prepared]).then(
      ([{ createControl }]) => {
        const control = createControl(this.#core, this.#options, this.#own)
        if (this.#isClosed) control.close()
        return (this.loaded = control)
      },
      (error: unknown) => {
        this.#loading = undefined
        throw error
      },
    ))
  }

  /** Undefined if loading fails. */
  async tryLoad(): Promise<Control | undefined> {
    try {
      return await this.load()
    } catch {
      const message = 'A part of the SDK is missing: guards do not work.'
      this.#core.diagnostics.report('error', 'control_unavailable', message)
      return undefined
    }
  }

  report(scope: RunScope | undefined, report: IssueReport): void {
    const { issues } = this
    if (issues) issues.report(scope, report)
    else {
      const reported = this.tryLoad().then((control) => control?.issues.report(scope, report))
      attempt(() => this.#core.settings.waitUntil?.(reported))
    }
  }

  get opened(): Promise<unknown> | undefined {
    return this.issues?.opened
  }

  get hasQueued(): boolean {
    return (this.issues?.counters?.queued ?? 0) > 0 || this.loaded?.configuration.isCounted === true
  }

  async flush(timeoutMs: number): Promise<void> {
    if (this.#loading) await this.tryLoad()
    await this.issues?.flush(timeoutMs)
  }

  async leave(): Promise<void> {
    await this.loaded?.configuration.leave()
  }

  close(): void {
    this.#isClosed = true
    if (this.loaded) this.loaded.close()
    else this.#own?.sender.close()
  }
}

/** The deployed prompts and policies. They are loaded on first use and refreshed after that. */
export class RuntimeConfiguration {
  readonly #control: LazyControl

  /** @internal */
  constructor(control: LazyControl) {
    this.#control = control
  }

  /** The current configuration and its age. */
  get state(): ConfigurationState {
    return this.#control.loaded?.configuration.state ?? NOTHING
  }

  /** Waits until a configuration is loaded, at most `timeoutMs` (default: 5,000). True if one is loaded. */
  async ready(timeoutMs: number = READY_MS): Promise<boolean> {
    const control = await this.#control.tryLoad()
    return (await control?.configuration.ready(timeoutMs)) ?? false
  }

  /** Refreshes now. True if the service confirmed the current configuration or sent a newer one. */
  async refresh(): Promise<boolean> {
    const control = await this.#control.tryLoad()
    return (await control?.configuration.refresh()) ?? false
  }

  /** Calls `listener` after each change. Returns a function that removes it. */
  onChange(listener: ConfigurationListener): () => void {
    let isWanted = true
    let end: (() => void) | undefined
    void this.#control.tryLoad().then((control) => {
      if (isWanted) end = control?.configuration.onChange(listener)
      void control?.configuration.start()
    })
    return () => {
      isWanted = false
      end?.()
    }
  }
}
