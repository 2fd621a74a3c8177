import type { ScriptedService } from './scripted-service.ts'

/** The release that every client gets as an option. */
export const RELEASE = '2026.11.3'

/** A client of the SDK under test, with a separate service. */
export interface Subject {
  readonly service: ScriptedService
  readonly clientId: string
  readonly apiKey: string
  /** Records one event and returns its id. */
  record(event?: object): Promise<string>
  /** Scores the run, or the run `runId`. Returns the event's id; null if the score is invalid. */
  score(score: object): Promise<string | null>
  /** Waits until recorded events are delivered, or the time is up. */
  flush(timeoutMs?: number): Promise<void>
  /** Fetches the runtime configuration now. */
  refresh(): Promise<void>
  configuration(): Promise<SeenConfiguration>
  /** Calls a guarded tool. */
  call(call: GuardedCall): Promise<Called>
  /** Handle with which another process continues the run. */
  handle(): Promise<object>
  /** Continues a waiting call with the arguments in the handle. */
  proceed(call: { approvalId: string; toolName: string }): Promise<Called>
  /** Starts another process, with a separate client id, that resumes the run. */
  next(handle: object): Promise<Subject>
  /** Changes the input object of a call while it waits. */
  changeInput(callId: string, input: object): Promise<void>
  /** Reports an issue record. */
  report(record: object): Promise<void>
  /** Counts of recorded events by result. */
  counters(): Promise<{ recorded: number; accepted: number; rejected: number; dropped: number; queued: number }>
  /** Everything the adapter has written so far. */
  output(): string
  /** Number of requests to `baseUrl` in a replay. */
  elsewhere(): number
}

/** `input`: of the tool. `approvalId`: of a pending call. `output`: what the caller gets in a replay. */
export interface Called {
  ran: boolean
  output?: unknown
  code?: string
  input?: unknown
  approvalId?: string
}

export interface GuardedCall {
  /** Identifies the call for `changeInput`. */
  callId: string
  toolName: string
  input: object
  approvalTimeoutMs: number
  /** How long the call waits for a decision before it ends as pending. Default: until the approval ends. */
  approvalWaitMs?: number
}

export interface SeenConfiguration {
  /** Null while nothing is loaded. */
  revision: string | null
  /** Content by name. */
  prompts: Record<string, string>
  policyIds: string[]
}

/** A rule of the interface. `run` rejects when the SDK breaks it. */
export interface Rule {
  /** Stable: `events/…`, `completeness/…`, `configuration/…`, `approvals/…`, `issues/…`, `scores/…`, `replay/…`. */
  readonly id: string
  /** The rule in a sentence. */
  readonly title: string
  /** The service is the host of a replay. The rule gets a separate adapter, with the host's address in TACHO_REPLAY. */
  readonly isReplay?: true
  run(subject: Subject): Promise<void>
}
