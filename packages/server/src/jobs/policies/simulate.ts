/**
 * Simulates a policy in slices, so that readers and requests do not wait.
 *
 *   QUEUED --first progress--> RUNNING --all slices examined--> DONE
 *      |                          |  +--keeps failing--> FAILED
 *      +--------- cancelled ------+--> CANCELLED
 *
 * After a crash, another node or a restarted one starts from the beginning.
 */
import { LRUCache } from 'lru-cache'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { DAY_MS, isoTime } from '../../storage/engine/times.ts'
import {
  conditionOf,
  needsPast,
  needsRunUsage,
  type AskedApproval,
  type Trial,
  type TrialFindings,
} from '../../domain/policies/policy-trial.ts'
import type {
  CallKind,
  CallPlace,
  PastRow,
  RunStepRow,
  SimulationRow,
  ToolCallRow,
} from '../../storage/policies/policies.ts'
import type { Storage } from '../../storage/storage.ts'
import type { WorkItem } from '../../storage/engine/work.ts'
import type { HandlerOptions, ItemHandler, Next } from '../engine/work.ts'
import type { TimelinePlace } from '../../storage/record/events.ts'
import { moduleUrl } from '../../program/program.ts'
import { startCalledThread } from '../../threads/threads.ts'
import type { TrialCall, TrialData } from './simulation-thread.ts'

type Acts =
  | 'findSimulation'
  | 'reportSimulation'
  | 'endSimulation'
  | 'countToolCalls'
  | 'listToolCalls'
  | 'listRunSteps'
  | 'listCallingRuns'
  | 'listRunPast'
  | 'findApprovals'

export interface SimulateOptions extends HandlerOptions<Acts> {
  maxCalls?: number
  sliceCalls?: number
  bounds?: Partial<WalkBounds>
}

/** Calls are counted in steps of this length, newest first, until there are enough. */
const COUNT_MS = 4 * 60 * 60 * 1000
const SLICE_CALLS = 250
const SLICE_BYTES = 524_288
const REPORT_MS = 500

class Interrupted extends Error {}

export function simulate(options: SimulateOptions): ItemHandler {
  const { storage, now } = options
  async function fail({ environmentId, subjectId }: WorkItem, error: string): Promise<Next> {
    await storage.endSimulation(environmentId, subjectId, { at: now(), status: 'FAILED', error })
    return 'ended'
  }
  return {
    kind: 'simulate',
    batch: 1,
    async perform(item, _, signal) {
      const simulation = await storage.findSimulation(item.environmentId, item.subjectId)
      if (simulation === null) return fail(item, 'The simulation was deleted')
      await run(simulation, options, signal)
      return 'ended'
    },
    giveUp: fail,
  }
}

async function run(simulation: SimulationRow, options: SimulateOptions, signal: AbortSignal): Promise<void> {
  const { storage, now, maxCalls = LIMITS.simulationCalls, sliceCalls = SLICE_CALLS } = options
  const { id, environmentId, condition, severity, action, onError, toolLabels, flow } = simulation
  const compiled = conditionOf(condition)
  const report = reporter(storage, simulation)
  if (!(await report(0, null, true))) return
  const window = await measure(storage, simulation, maxCalls)
  const trial = startTrial({ condition, severity, action, onError, toolLabels, flow })
  const decided = countDecisions(storage, environmentId)
  let firstAt = window.to
  const noteFirst = (rows: readonly { time: number }[]) => {
    for (const { time } of rows) if (time >= window.from) firstAt = Math.min(firstAt, time)
  }
  async function goOn(scanned: number): Promise<boolean> {
    if (signal.aborted) throw new Interrupted('the process is shutting down')
    return report(scanned, window.total, false)
  }
  async function pastOfRuns(): Promise<number | null> {
    const walk = { storage, environmentId, from: window.from, to: window.to, bounds: options.bounds }
    const lookAt = async (rows: PastRow[], scanned: number) => {
      if (!(await goOn(scanned))) return false
      noteFirst(rows)
      await decided.count(await trial.walk(rows, window.from))
      return true
    }
    const walked = await walkRuns({ ...walk, look: lookAt })
    if (walked?.isCut) window.cut = true
    return walked && walked.scanned
  }
  async function callsInOrder(): Promise<number | null> {
    const steps = needsRunUsage(compiled) ? readSteps(storage, environmentId, trial) : null
    let scanned = 0
    let kind: CallKind = 'held'
    let after: CallPlace | null = null
    for (;;) {
      if (!(await goOn(scanned))) return null
      const limit = Math.min(sliceCalls, maxCalls - scanned)
      const page = { kind, from: window.from, to: window.to, limit, pageBytes: SLICE_BYTES, after }
      const calls: ToolCallRow[] = limit > 0 ? await storage.listToolCalls(environmentId, page) : []
      const last = calls.at(-1)
      if (last === undefined) {
        if (kind === 'ran' || limit <= 0) return scanned
        // Approvals whose call ran are counted separately from the others.
        kind = 'ran'
        after = null
        steps?.startAgain()
        continue
      }
      noteFirst(calls)
      await steps?.readBefore(calls)
      await decided.count(await trial.look(kind, calls))
      scanned += calls.length
      after = { time: last.time, run: last.run, seq: last.seq }
    }
  }
  try {
    const scanned = await (needsPast(compiled, simulation) ? pastOfRuns() : callsInOrder())
    if (scanned === null) return
    const looked = { scanned, firstAt, asks: action === 'REQUIRE_APPROVAL' }
    const result = await resultOf(trial, window, decided, looked)
    await storage.endSimulation(environmentId, id, { at: now(), status: 'DONE', scanned, result })
  } finally {
    await trial.close()
  }
}

type Window = Awaited<ReturnType<typeof measure>>

async function measure(
  storage: Pick<Storage, 'countToolCalls'>,
  { environmentId, createdAt, days }: SimulationRow,
  maxCalls: number,
) {
  const start = createdAt - days * DAY_MS
  let total = 0
  let from = createdAt
  while (from > start) {
    const earlier = Math.max(start, from - COUNT_MS)
    const held = await storage.countToolCalls(environmentId, 'held', earlier, from)
    const count = held + (await storage.countToolCalls(environmentId, 'ran', earlier, from))
    const cut = total + count > maxCalls
    // If one step alone exceeds the limit, examine it up to the limit.
    if (cut && total > 0) return { from, to: createdAt, total, cut }
    total += count
    from = earlier
    if (cut) return { from, to: createdAt, total: maxCalls, cut }
  }
  return { from, to: createdAt, total, cut: false }
}

function reporter(storage: Pick<Storage, 'reportSimulation'>, { id, environmentId }: SimulationRow) {
  let reportedAt = Number.NEGATIVE_INFINITY
  return async (scanned: number, total: number | null, always: boolean): Promise<boolean> => {
    if (!always && performance.now() - reportedAt < REPORT_MS) return true
    reportedAt = performance.now()
    return storage.reportSimulation(environmentId, id, { scanned, total })
  }
}

type ApprovalCounts = SimulationResult['approvals']

/** Decisions on calls that the policy does not act on are counted for at most this many tools. */
const TOOLS_COUNTED = 1_000

function countDecisions(storage: Pick<Storage, 'findApprovals'>, environmentId: string) {
  const none = () => ({ approved: 0, rejected: 0, expired: 0 })
  const hits = none()
  /** Counted by tool, because only the end shows which tools the policy is about. */
  const others = new Map<string, ApprovalCounts['others']>()
  const names = { APPROVED: 'approved', REJECTED: 'rejected', EXPIRED: 'expired', PENDING: null } as const

  function othersOf(toolName: string): ApprovalCounts['others'] | undefined {
    if (!others.has(toolName) && others.size < TOOLS_COUNTED) others.set(toolName, none())
    return others.get(toolName)
  }

  return {
    async count(asked: AskedApproval[]): Promise<void> {
      if (asked.length === 0) return
      const ids = [...new Set(asked.map(({ approvalId }) => approvalId))]
      const namedApprovals = await storage.findApprovals(environmentId, ids)
      const statuses = new Map(namedApprovals.map(({ id, status }) => [id, status]))
      for (const { approvalId, hit, toolName } of asked) {
        const name = names[statuses.get(approvalId) ?? 'PENDING']
        const counts = name !== null && (hit ? hits : othersOf(toolName))
        if (counts) counts[name] += 1
      }
    },
    async counts(trial: Pick<TrialThread, 'decidedTools'>): Promise<ApprovalCounts> {
      const sums = none()
      for (const tool of await trial.decidedTools([...others.keys()])) {
        const { approved, rejected, expired } = others.get(tool) ?? none()
        sums.approved += approved
        sums.rejected += rejected
        sums.expired += expired
      }
      return { hits, others: sums }
    },
  }
}

async function resultOf(
  trial: TrialThread,
  { from, to, cut }: Window,
  decided: Pick<ReturnType<typeof countDecisions>, 'counts'>,
  { scanned, firstAt, asks }: { scanned: number; firstAt: number; asks: boolean },
): Promise<SimulationResult> {
  const findings = await trial.findings()
  const approvals = await decided.counts(trial)
  const warnings = [...findings.warnings]
  if (cut) {
    const message = `Only ${scanned} calls were examined, from ${isoTime(from)} on; others were skipped`
    warnings.push({ code: 'not_all_looked_at', field: null, message })
  }
  // Starts with the first call, because there was nothing to ask about before.
  const askedSince = Math.min(firstAt, to - DAY_MS)
  const askedPerDay = Math.round((findings.hits * 10 * DAY_MS) / (to - askedSince)) / 10
  return {
    ...findings,
    ...(asks && { askedPerDay, askedSince: isoTime(askedSince) }),
    from: isoTime(from),
    to: isoTime(to),
    approvals,
    warnings,
  }
}

const PAGE_STEPS = 1_000
const PAGE_BYTES = 1_048_576
/** Bounded: an evicted run is read again from its start. */
const RUNS_FOLLOWED = 10_000

function readSteps(
  storage: Pick<Storage, 'listRunSteps'>,
  environmentId: string,
  taker: Pick<Trial, 'addSteps' | 'forgetRuns'>,
) {
  const followed = new LRUCache<string, { after: TimelinePlace | null }>({
    max: RUNS_FOLLOWED,
    dispose: (_, run, reason) => {
      if (reason === 'evict') taker.forgetRuns([run])
    },
  })

  async function readUpTo(run: string, before: TimelinePlace): Promise<void> {
    let after = followed.get(run)?.after ?? null
    for (;;) {
      const page = { limit: PAGE_STEPS, pageBytes: PAGE_BYTES, after, before }
      const steps = await storage.listRunSteps(environmentId, run, page)
      const last = steps.at(-1)
      if (last === undefined) break
      taker.addSteps(run, steps)
      after = { time: last.time, seq: last.seq }
    }
    followed.set(run, { after })
  }

  return {
    /** Restarts, for calls that come before those already read. */
    startAgain(): void {
      taker.forgetRuns([...followed.keys()])
      followed.clear()
    },
    async readBefore(calls: ToolCallRow[]): Promise<void> {
      // Calls are in time order, so the last call of each run remains in the map.
      const lastOf = new Map(calls.map(({ run, time, seq }) => [run, { time, seq }]))
      for (const [run, before] of lastOf) await readUpTo(run, before)
    },
  }
}

type TrialThread = ReturnType<typeof startTrial>

const HEAP_MIB = 256

function startTrial(policy: TrialData) {
  const thread = startCalledThread<TrialCall, unknown>(moduleUrl('simulation-thread', import.meta.url), {
    name: 'simulation',
    workerData: policy,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
  })
  return {
    addSteps: (run: string, steps: RunStepRow[]) => thread.tell(['addSteps', run, steps]),
    forgetRuns: (runs: string[]) => thread.tell(['forgetRuns', runs]),
    walk: (rows: PastRow[], from: number) => thread.call(['walk', rows, from]) as Promise<AskedApproval[]>,
    look: (kind: CallKind, calls: ToolCallRow[]) => thread.call(['look', kind, calls]) as Promise<AskedApproval[]>,
    decidedTools: (names: string[]) => thread.call(['decidedTools', names]) as Promise<string[]>,
    findings: () => thread.call(['findings']) as Promise<TrialFindings>,
    close: thread.close,
  }
}

interface WalkBounds {
  readonly runs: number
  readonly bytes: number
  readonly runBytes: number
  readonly ms: number
}

const BOUNDS: WalkBounds = {
  runs: LIMITS.simulationRuns,
  bytes: LIMITS.simulationBytes,
  runBytes: LIMITS.simulationRunBytes,
  ms: 600_000,
}
const PAST_ROWS = 500
const PAST_BYTES = 2_097_152

interface Walk {
  readonly storage: Pick<Storage, 'listCallingRuns' | 'listRunPast'>
  readonly environmentId: string
  readonly from: number
  readonly to: number
  readonly bounds?: Partial<WalkBounds> | undefined
  /** Called with events of one run. False: stop. */
  look(rows: PastRow[], scanned: number): Promise<boolean>
}

interface Walked {
  scanned: number
  /** Whether a bound left calls out. */
  isCut: boolean
}

/**
 * Simulates conditions that read the past. It reads whole runs, one after the other, newest first, because a past must
 * be read in order and only once. Bounded in runs, bytes and time; the result reports a reached bound.
 */
async function walkRuns({ storage, environmentId, from, to, look, ...walk }: Walk): Promise<Walked | null> {
  const bounds = { ...BOUNDS, ...walk.bounds }
  const until = performance.now() + bounds.ms
  const runs = await storage.listCallingRuns(environmentId, from, to, bounds.runs + 1)
  let isCut = runs.length > bounds.runs
  let bytes = 0
  let scanned = 0
  for (const { run, calls } of runs.slice(0, bounds.runs)) {
    if (bytes > bounds.bytes || performance.now() > until) return { scanned, isCut: true }
    let runBytes = 0
    let after: TimelinePlace | null = null
    for (;;) {
      const page = { limit: PAST_ROWS, pageBytes: PAST_BYTES, after, before: { time: to, seq: 0 } }
      const rows: PastRow[] = await storage.listRunPast(environmentId, run, page)
      const last = rows.at(-1)
      if (last === undefined) break
      if (!(await look(rows, scanned))) return null
      runBytes += rows.reduce((sum, { payload }) => sum + payload.length, 0)
      after = { time: last.time, seq: last.seq }
      if (runBytes <= bounds.runBytes) continue
      isCut = true
      break
    }
    bytes += runBytes
    scanned += calls
  }
  return { scanned, isCut }
}
