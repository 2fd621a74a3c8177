import { CORE } from './border.ts'
import type { Beyond } from './core.ts'
import { hostRuntime, type Runtime } from './delivery/runtime.ts'
import type { RecorderOptions } from './options.ts'
import { Recorder as Client } from './recorder.ts'

const needsTacho = (name: string) => `${name} needs Tacho from @tacho/sdk.`

const BEYOND: Beyond = {
  spoolEvents: async (_folder, _sender, { diagnostics }) =>
    diagnostics.report('error', 'spool_failed', needsTacho('spool')),
}

/** Records runs for one environment. Recording never throws, never waits and never ends its host process. */
export class Recorder extends Client {
  /** @internal Published code is minified, which would shorten it. */
  static override readonly name: string = 'Recorder'

  constructor(options?: RecorderOptions)
  /** @internal For our tests: another clock, network or source of randomness. */
  constructor(options?: RecorderOptions, runtime?: Runtime)
  constructor(options: RecorderOptions = {}, runtime: Runtime = hostRuntime) {
    super(options, runtime, BEYOND)
    const { diagnostics, options: coreOptions } = this[CORE]
    for (const name of ['configuration', 'guard'] as const) {
      if (coreOptions[name] !== undefined) diagnostics.report('error', 'invalid_option', needsTacho(name))
    }
  }
}

export type { RecorderOptions, Capture } from './options.ts'
export type { Outcome, OpenSpan, Run, RunHandle, RunOptions, LlmCall, ToolCall } from './recording/run.ts'
export type { MaskingOptions } from './recording/mask.ts'
export type { Counters, Diagnostic, DiagnosticLevel, DropReason, OnDiagnostic } from './delivery/diagnostics.ts'
export type { EventType, NewEvent, Payload, ScoreDetails, ScoreValue } from './recording/event.ts'
export type { FlushResult } from './delivery/diagnostics.ts'
