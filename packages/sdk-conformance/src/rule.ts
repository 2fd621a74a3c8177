import type { ScriptedService } from './scripted-service.ts'

/** One client of the SDK under test, with a service of its own. */
export interface Subject {
  readonly service: ScriptedService
  readonly clientId: string
  readonly apiKey: string
  /** Records one event and returns its id. */
  record(event?: object): Promise<string>
  /** Waits until what was recorded is delivered, or the time is up. */
  flush(timeoutMs?: number): Promise<void>
  /** Fetches the runtime configuration now. */
  refresh(): Promise<void>
  configuration(): Promise<SeenConfiguration>
  /** Calls a guarded tool. */
  call(call: GuardedCall): Promise<{ ran: boolean; code?: string }>
  /** Changes the input object that a call was given, while it waits. */
  changeInput(callId: string, input: object): Promise<void>
  /** Reports an issue record. */
  report(record: object): Promise<void>
  /** Recorded, and what became of it. */
  counters(): Promise<{ recorded: number; accepted: number; rejected: number; dropped: number; queued: number }>
  /** Everything that the adapter wrote so far. */
  output(): string
}

export interface GuardedCall {
  /** Names the call for `changeInput`. */
  callId: string
  toolName: string
  input: object
  approvalTimeoutMs: number
}

export interface SeenConfiguration {
  /** Null while nothing was loaded. */
  revision: string | null
  /** Content by name. */
  prompts: Record<string, string>
  policyIds: string[]
}

/** A rule of the interface. `run` rejects when the SDK breaks it. */
export interface Rule {
  /** Stable: `events/…`, `configuration/…`, `approvals/…`, `issues/…`. */
  readonly id: string
  /** The rule in a sentence. */
  readonly title: string
  run(subject: Subject): Promise<void>
}
