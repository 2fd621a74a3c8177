/** A client for your tests: the whole SDK, with a service in memory instead of the network. */
import type { TachoOptions } from '../options.ts'
import type { LocalPolicy } from '../guard/rules.ts'
import { Tacho } from '../tacho.ts'
import {
  FakeService,
  type Approver,
  type RecordedEvent,
  type RecordedIssue,
  type RequestedApproval,
} from './fake-service.ts'

export { replay, type ReplayOptions } from './replay.ts'

export type FakeOptions = Omit<TachoOptions, 'apiKey' | 'baseUrl' | 'fetch'> & {
  /** The deployed policies. */
  deployedPolicies?: readonly LocalPolicy[] | undefined
  /** Contents of the deployed prompts, by name. */
  deployedPrompts?: Readonly<Record<string, string>> | undefined
  /** How approval requests are decided. Default: reject. */
  approvals?: Approver | undefined
}

/** A run, built from its events. */
export interface RecordedRun {
  readonly runId: string
  readonly agentName: string
  readonly agentId: string | undefined
  readonly status: 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELLED'
  readonly events: readonly RecordedEvent[]
}

/** A policy decision. */
export interface RecordedDecision {
  readonly action: string
  readonly toolName: string
  readonly policyIds: readonly string[]
  readonly event: RecordedEvent
}

type Part<T> = { readonly [Key in keyof T]?: unknown }

export interface FakeTacho {
  /** Pass it to the code under test. */
  readonly tacho: Tacho
  /** Everything recorded so far, in order. */
  events(): Promise<readonly RecordedEvent[]>
  runs(): Promise<readonly RecordedRun[]>
  decisions(): Promise<readonly RecordedDecision[]>
  approvals(): Promise<readonly RequestedApproval[]>
  issues(): Promise<readonly RecordedIssue[]>
  /** Deploys other policies. */
  deployPolicies(policies: readonly LocalPolicy[]): Promise<void>
  /** Changes the deployed policies; the client does not know yet. */
  setPolicies(policies: readonly LocalPolicy[]): void
  /** Deploys other prompts. */
  deployPrompts(prompts: Readonly<Record<string, string>>): Promise<void>
  /** Decides later approval requests. */
  answerApprovals(approver: Approver): void
  /** True: the service is down from now on. */
  setDown(isDown: boolean): void
  /** @throws Error unless there is an event of this type whose payload contains this one. */
  assertEvent(eventType: string, payload?: Readonly<Record<string, unknown>>): Promise<RecordedEvent>
  /** @throws Error when there is such an event. */
  assertNoEvent(eventType: string, payload?: Readonly<Record<string, unknown>>): Promise<void>
  /** @throws Error unless a run has these fields. */
  assertRun(fields: Part<Omit<RecordedRun, 'events'>>): Promise<RecordedRun>
  /** @throws Error unless a decision has these fields. */
  assertDecision(fields: Part<Omit<RecordedDecision, 'event'>>): Promise<RecordedDecision>
  /** Stops its timers. */
  close(): Promise<void>
}

/** Makes a client whose service is in memory. Nothing leaves the process, and no key is needed. */
export function fakeTacho(options: FakeOptions = {}): FakeTacho {
  const { deployedPolicies = [], deployedPrompts = {}, approvals = 'reject', ...otherOptions } = options
  const service = new FakeService(approvals)
  service.setPolicies(deployedPolicies)
  service.prompts = deployedPrompts
  const defaults = { clientId: 'fake', flushIntervalMs: 0 }
  // On a busy machine, loading policies from memory can take longer than the default of 2 s.
  const guard = { configurationWaitMs: 60_000, ...otherOptions.guard }
  const tacho = new Tacho({
    ...defaults,
    ...otherOptions,
    guard,
    apiKey: 'fake',
    baseUrl: 'http://localhost',
    fetch: service.fetch,
  })

  const delivered = async () => {
    await tacho.flush()
    return service
  }
  const events = async () => [...(await delivered()).events]
  const runs = async () => runsOf(await events())
  const decisions = async () => decisionsOf(await events())

  return {
    tacho,
    events,
    runs,
    decisions,
    approvals: async () => [...(await delivered()).approvals.values()],
    issues: async () => [...(await delivered()).issues],
    setPolicies: (policies) => service.setPolicies(policies),
    async deployPolicies(policies) {
      service.setPolicies(policies)
      await tacho.configuration.refresh()
    },
    async deployPrompts(prompts) {
      service.prompts = prompts
      await tacho.configuration.refresh()
    },
    answerApprovals: (approver) => void (service.approver = approver),
    setDown: (isDown) => void (service.isDown = isDown),
    async assertEvent(eventType, payload = {}) {
      return oneNamed(await events(), { eventType, payload }, 'event')
    },
    async assertNoEvent(eventType, payload = {}) {
      const wrong = (await events()).find((event) => holds(event, { eventType, payload }))
      if (wrong) throw new Error(`Expected no such event, but found ${JSON.stringify(wrong)}`)
    },
    assertRun: async (fields) => oneNamed(await runs(), fields, 'run'),
    assertDecision: async (fields) => oneNamed(await decisions(), fields, 'decision'),
    async close() {
      await tacho.shutdown()
    },
  }
}

function runsOf(events: readonly RecordedEvent[]): RecordedRun[] {
  const byRun = new Map<string, RecordedEvent[]>()
  for (const event of events) byRun.set(event.runId, [...(byRun.get(event.runId) ?? []), event])
  return [...byRun].map(([runId, ofRun]) => {
    const first = ofRun[0] as RecordedEvent
    const outcome = ofRun.find(({ eventType }) => eventType === 'SESSION_OUTCOME')?.payload['status']
    const status = (outcome ?? 'RUNNING') as RecordedRun['status']
    return { runId, agentName: first.agentName, agentId: first.agentId, status, events: ofRun }
  })
}

function decisionsOf(events: readonly RecordedEvent[]): RecordedDecision[] {
  return events
    .filter(({ eventType }) => eventType === 'POLICY_DECISION')
    .map((event) => {
      const { action, toolName, policyIds } = event.payload as unknown as RecordedDecision
      return { action, toolName, policyIds, event }
    })
}

function oneNamed<T>(all: readonly T[], wanted: object, noun: string): T {
  const match = all.find((one) => holds(one, wanted))
  if (match !== undefined) return match
  const had = all.map((one) => `\n  ${JSON.stringify(one)}`).join('')
  throw new Error(`Found no ${noun} with ${JSON.stringify(wanted)}. Found:${had === '' ? ' none.' : had}`)
}

/** Objects must contain at least the wanted keys. Lists and all other values must be equal. */
function holds(value: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return Object.is(value, wanted)
  if (Array.isArray(wanted)) {
    const isList = Array.isArray(value) && value.length === wanted.length
    return isList && wanted.every((each, index) => holds(value[index], each))
  }
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(wanted).every(([key, each]) => holds((value as Record<string, unknown>)[key], each))
}
