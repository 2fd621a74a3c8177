/** State of a run in all its processes: a handle carries it to the next one. */
import type { CarriedState, OpenCall } from './carried-state.ts'
import { byteLength } from './text.ts'

/** Shared by the scopes of a run in this process. */
export interface RunState {
  /** Input hash and tool of the last guarded calls, to detect loops. */
  readonly recentCalls: string[]
  /** Open calls by approval. Null: this process saw the end of the call. */
  readonly openCalls: Map<string, OpenCall | { readonly toolName: string; readonly inputHash: null }>
  /** Numbers by input, or by input and key. */
  readonly numbers: Map<string, Numbers>
  /** The history of this run, if a policy needs it (guard/run-histories.ts). */
  history?: { carried(): unknown }
}

/** Numbers of calls that no other call may use. */
interface Numbers {
  readonly waiting: Set<number>
  /** The approvals of all lower numbers are spent. A count, because a run can have a million. */
  spent: number
  /** Spent numbers that are higher than the first free one. */
  readonly spentLater: Set<number>
}

/** States by run id. */
export type SharedStates = Map<string, RunState>

const RECENT_MAX = 100
const OPEN_MAX = 100
const INPUTS_MAX = 1_000
const SPENT_MAX = 1_000_000_000
const ARGS_BYTES_MAX = 65_536
/** Maximum number of runs with handles whose state this process remembers. */
const SHARED_MAX = 1_000
const HASH = /^[0-9a-f]{32,128}$/

export function createRunState(): RunState {
  return { recentCalls: [], openCalls: new Map(), numbers: new Map() }
}

/** A run that began in this process keeps its state. */
export function resumedState(sharedStates: SharedStates, runId: string, carriedState: CarriedState): RunState {
  const state = sharedStates.get(runId) ?? createRunState()
  renew(sharedStates, runId, state, SHARED_MAX)
  if (!state.recentCalls[0])
    state.recentCalls.push(...listOf(carriedState.recentCalls).filter(isText).slice(-RECENT_MAX))
  for (const [slot, count] of Object.entries(Object(carriedState.spentApprovals)).slice(-INPUTS_MAX)) {
    if (!HASH.test(slot) || !isNumber(count)) continue
    const numbers = numbersOf(state, slot)
    numbers.spent = Math.max(numbers.spent, count)
  }
  for (const call of listOf(carriedState.approvals).slice(-OPEN_MAX).filter(isOpenCall)) {
    if (!state.openCalls.has(call.approvalId)) state.openCalls.set(call.approvalId, call)
  }
  return state
}

/** @param used in all processes of the run. */
export function carriedState(
  sharedStates: SharedStates,
  { runId, state, approvalClientId: clientId }: { runId: string; state: RunState; approvalClientId: string },
  used: CarriedState['used'],
): CarriedState {
  renew(sharedStates, runId, state, SHARED_MAX)
  const recentCalls = state.recentCalls.slice(-RECENT_MAX)
  const approvals = [...state.openCalls.values()].filter((call) => call.inputHash !== null)
  const spent = [...state.numbers].map(([slot, numbers]) => [slot, numbers.spent] as const).filter(([, count]) => count)
  return {
    clientId,
    used,
    history: state.history?.carried(),
    ...(recentCalls[0] && { recentCalls }),
    ...(spent[0] && { spentApprovals: Object.fromEntries(spent.slice(-OPEN_MAX)) }),
    ...(approvals[0] && { approvals }),
  }
}

/** The lowest number that no other call has. @param slot the input hash, or a hash of it and the caller's key. */
export function nextNumber({ numbers }: RunState, slot: string): number {
  const taken = numbers.get(slot)
  let number = taken?.spent ?? 0
  while (taken?.waiting.has(number) || taken?.spentLater.has(number)) number++
  return number
}

/** Reserves the number while this call waits for an approval. */
export function takeNumber(state: RunState, slot: string, number: number): void {
  numbersOf(state, slot).waiting.add(number)
}

export function freeNumber(state: RunState, slot: string, number: number): void {
  state.numbers.get(slot)?.waiting.delete(number)
}

export function spendNumber(state: RunState, slot: string, number: number): void {
  const numbers = numbersOf(state, slot)
  numbers.waiting.delete(number)
  if (number >= numbers.spent) numbers.spentLater.add(number)
  while (numbers.spentLater.delete(numbers.spent)) numbers.spent++
}

export function openCall(state: RunState, call: OpenCall): void {
  renew(state.openCalls, call.approvalId, call, OPEN_MAX)
}

export function closeCall(state: RunState, approvalId: string, toolName: string): void {
  if (state.openCalls.has(approvalId)) state.openCalls.set(approvalId, { toolName, inputHash: null })
}

/** Undefined if a handle cannot hold them. */
export function carriedArgs(args: readonly unknown[] | undefined): readonly unknown[] | undefined {
  const text = args && JSON.stringify(args)
  return text !== undefined && byteLength(text) <= ARGS_BYTES_MAX ? (JSON.parse(text) as unknown[]) : undefined
}

/** Makes an entry the newest. Removes the oldest one if there are more than `most`. */
export function renew<Key, Value>(known: Map<Key, Value>, key: Key, value: Value, most: number): void {
  known.delete(key)
  known.set(key, value)
  const [oldest] = known.size > most ? known.keys() : []
  if (oldest !== undefined) known.delete(oldest)
}

function numbersOf({ numbers }: RunState, slot: string): Numbers {
  const known = numbers.get(slot) ?? { waiting: new Set(), spent: 0, spentLater: new Set() }
  renew(numbers, slot, known, INPUTS_MAX)
  return known
}

function listOf(rawState: unknown): unknown[] {
  return Array.isArray(rawState) ? rawState : []
}

function isText(rawState: unknown): rawState is string {
  return typeof rawState === 'string'
}

function isNumber(rawState: unknown): rawState is number {
  return Number.isInteger(rawState) && (rawState as number) >= 0 && (rawState as number) <= SPENT_MAX
}

function isOpenCall(rawState: unknown): rawState is OpenCall {
  const { approvalId, toolName, inputHash, key, spent = 0, args = [] } = Object(rawState) as Record<string, unknown>
  return (
    [approvalId, toolName, inputHash].every(isText) &&
    HASH.test(inputHash as string) &&
    (isText(key) ? key !== '' : isNumber(key)) &&
    isNumber(spent) &&
    Array.isArray(args)
  )
}
