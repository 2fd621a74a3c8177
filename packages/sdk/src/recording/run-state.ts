/** In all processes of a run: a handle carries it to the next one. */
import { byteLength } from './text.ts'

export interface OpenCall {
  readonly approvalId: string
  readonly toolName: string
  readonly inputHash: string
  /** Distinguishes the calls of a run with this tool and input: their number, or the caller's own text. */
  readonly key: number | string
  /** How many approvals of the caller's text were spent before. Absent: none. */
  readonly spent?: number
  /** ISO 8601; null if the service did not say. */
  readonly expiresAt: string | null
  /** Absent if it is not plain JSON, or too large for a handle. */
  readonly args?: readonly unknown[]
  /** Arguments by name, of a tool in Python. */
  readonly named?: Readonly<Record<string, unknown>>
}

/** Shared by the scopes of a run in this process. */
export interface RunState {
  /** Input hash and tool, to find loops. */
  readonly recentCalls: string[]
  /** By approval. Null: this process saw its end. */
  readonly openCalls: Map<string, OpenCall | { readonly toolName: string; readonly inputHash: null }>
  /** By input, or by input and key. */
  readonly numbers: Map<string, Numbers>
}

/** No other call may have these numbers. */
interface Numbers {
  readonly waiting: Set<number>
  /** The approvals of all lower numbers are spent. A count, because a run can have a million. */
  spent: number
  /** Spent numbers above the first that is not. */
  readonly spentLater: Set<number>
}

export interface CarriedState {
  /** The client in whose name approvals are requested: the service shows them to no other. */
  readonly clientId?: string | undefined
  readonly used?: { toolCalls?: number; totalTokens?: number; cost?: number; seconds?: number } | undefined
  readonly recentCalls?: readonly string[] | undefined
  /** How many approvals are spent, by the hash of the input, or of the input and the caller's key. */
  readonly spentApprovals?: Readonly<Record<string, number>> | undefined
  /** Calls that wait for a person, with their arguments. */
  readonly approvals?: readonly OpenCall[] | undefined
}

/** By run id. */
export type SharedStates = Map<string, RunState>

const RECENT_MAX = 100
const OPEN_MAX = 100
const INPUTS_MAX = 1_000
const SPENT_MAX = 1_000_000_000
const ARGS_BYTES_MAX = 65_536
/** Their handles were made or resumed here. */
const SHARED_MAX = 1_000
const HASH = /^[0-9a-f]{32,128}$/

export function createRunState(): RunState {
  return { recentCalls: [], openCalls: new Map(), numbers: new Map() }
}

/** A run that began in this process keeps its state. */
export function resumedState(sharedStates: SharedStates, runId: string, carriedState: CarriedState): RunState {
  const state = sharedStates.get(runId) ?? createRunState()
  share(sharedStates, runId, state)
  if (state.recentCalls.length === 0) state.recentCalls.push(...texts(carriedState.recentCalls).slice(-RECENT_MAX))
  for (const [slot, count] of Object.entries(Object(carriedState.spentApprovals)).slice(-INPUTS_MAX)) {
    if (!HASH.test(slot) || !isNumber(count)) continue
    const numbers = numbersOf(state, slot)
    numbers.spent = Math.max(numbers.spent, count)
  }
  const open = Array.isArray(carriedState.approvals) ? (carriedState.approvals as unknown[]).slice(-OPEN_MAX) : []
  for (const call of open.filter(isOpenCall)) {
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
  share(sharedStates, runId, state)
  const approvals = [...state.openCalls.values()].filter((call) => call.inputHash !== null)
  const spent = [...state.numbers].flatMap(([slot, numbers]) =>
    numbers.spent > 0 ? [[slot, numbers.spent] as const] : [],
  )
  return {
    clientId,
    used,
    ...(state.recentCalls.length > 0 && { recentCalls: state.recentCalls.slice(-RECENT_MAX) }),
    ...(spent.length > 0 && { spentApprovals: Object.fromEntries(spent.slice(-OPEN_MAX)) }),
    ...(approvals.length > 0 && { approvals }),
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
  state.openCalls.delete(call.approvalId)
  state.openCalls.set(call.approvalId, call)
  const [oldest] = state.openCalls.size > OPEN_MAX ? state.openCalls.keys() : []
  if (oldest !== undefined) state.openCalls.delete(oldest)
}

export function closeCall(state: RunState, approvalId: string, toolName: string): void {
  if (state.openCalls.has(approvalId)) state.openCalls.set(approvalId, { toolName, inputHash: null })
}

/** Undefined if a handle cannot hold them. */
export function carriedArgs(args: readonly unknown[] | undefined): readonly unknown[] | undefined {
  const text = args && JSON.stringify(args)
  return text !== undefined && byteLength(text) <= ARGS_BYTES_MAX ? (JSON.parse(text) as unknown[]) : undefined
}

function share(states: SharedStates, runId: string, state: RunState): void {
  states.delete(runId)
  states.set(runId, state)
  const [oldest] = states.size > SHARED_MAX ? states.keys() : []
  if (oldest !== undefined) states.delete(oldest)
}

function numbersOf({ numbers }: RunState, slot: string): Numbers {
  const known = numbers.get(slot) ?? { waiting: new Set(), spent: 0, spentLater: new Set() }
  numbers.set(slot, known)
  const [oldest] = numbers.size > INPUTS_MAX ? numbers.keys() : []
  if (oldest !== undefined) numbers.delete(oldest)
  return known
}

function texts(rawState: unknown): string[] {
  return Array.isArray(rawState) ? rawState.filter((one): one is string => typeof one === 'string') : []
}

function isNumber(rawState: unknown): rawState is number {
  return Number.isInteger(rawState) && (rawState as number) >= 0 && (rawState as number) <= SPENT_MAX
}

function isOpenCall(rawState: unknown): rawState is OpenCall {
  const { approvalId, toolName, inputHash, key, spent = 0, args = [] } = Object(rawState) as Record<string, unknown>
  return (
    typeof approvalId === 'string' &&
    typeof toolName === 'string' &&
    typeof inputHash === 'string' &&
    HASH.test(inputHash) &&
    (typeof key === 'string' ? key !== '' : isNumber(key)) &&
    isNumber(spent) &&
    Array.isArray(args)
  )
}
