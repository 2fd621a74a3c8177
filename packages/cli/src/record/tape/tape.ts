/**
 * A tape: one run as a file that people can review and keep in git. JSON Lines in a stable order; the first line is the head.
 * A tape may come from a stranger, so the reader checks size, lines, depth and every member. Nothing in a tape names a
 * file, a program or an address.
 */
import { createHash } from 'node:crypto'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'

export const TAPE_VERSION = 1 as const

/** Why a run cannot be replayed, and at which step. Step 0: the run itself. */
export interface Obstacle {
  step: number
  why: string
}

export interface TapePrompt {
  name: string
  promptId: string
  version: string
  versionId: string
  /** SHA-256 of the content. */
  hash: string
  content: string
}

export interface TapePolicy {
  policyId: string
  name: string
  /** Includes the message for the model. */
  description?: string
  version: string
  condition: string
  severity: string
  action: string
  onError?: string
  /** SHA-256 of the members that affect a decision. */
  hash?: string
}

export interface TapeHead {
  tape: typeof TAPE_VERSION
  run: string
  agent: string
  recordedBy: 'sdk' | 'wire' | 'otlp'
  outcome: string
  /** Checksum of all lines after the head. */
  checksum: string
  replayable: true | Obstacle[]
  prompts: TapePrompt[]
  policies: TapePolicy[]
  /** Labels of tools, for conditions on the past. */
  labels?: ToolLabel[]
}

/** `from`, `to`: positions in the run's events. Steps that overlap may come in any order. */
interface Timed {
  step: number
  from: number
  to: number
  agent?: string
  /**
   * The guarded call that contains this step. The tape answers that call as a whole, so this step is never asked for.
   */
  within?: number
}

export interface ModelStep extends Timed {
  kind: 'model'
  model?: string
  messages?: unknown
  output?: unknown
  toolCalls?: unknown
  finishReason?: unknown
  usage?: unknown
  cost?: number
  latency?: number
  /** The answer was streamed. */
  streamed?: true
  error?: unknown
  /** The response as `tacho record` received it. */
  wire?: { protocol: string; status: number; isStream: boolean; body: string }
}

export interface ToolStep extends Timed {
  kind: 'tool'
  tool: string
  input?: unknown
  inputHash?: string
  outcome: string
  output?: unknown
  error?: unknown
  /** The model's id of the call. */
  callId?: string
  /** The model call that asked for this call. Its calls may come in any order. */
  askedBy?: number
  latency?: number
  /** No guard checks this call, so a replay cannot replace it. */
  unguarded?: true
}

export interface DecisionStep extends Timed {
  kind: 'decision'
  tool: string
  action: string
  policies: string[]
  input?: unknown
}

export interface ApprovalStep extends Timed {
  kind: 'approval'
  tool: string
  inputHash?: string
  status: string
  reason?: string
}

export interface InputStep extends Timed {
  kind: 'input'
  text: unknown
}

export interface EndStep extends Timed {
  kind: 'end'
  status: string
  error?: unknown
}

export type TapeStep = ModelStep | ToolStep | DecisionStep | ApprovalStep | InputStep | EndStep

export interface Tape {
  head: TapeHead
  steps: TapeStep[]
}

/** The user's first message. */
export function firstInput({ steps }: Tape): unknown {
  return steps.find((step) => step.kind === 'input')?.text
}

/** The reason why a file is not a tape. */
export class TapeFault extends Error {
  override readonly name = 'TapeFault'
}

export const TAPE_LIMITS = { bytes: 256 * 1_048_576, lineBytes: 4 * 1_048_576, lines: 100_000, depth: 200 } as const

/** Text of a tape: one line for the head and one for each step, with members in a fixed order. */
export function tapeText({ head, steps }: Tape): string {
  const lines = steps.map((step) => `${JSON.stringify(ordered(step, MEMBERS[step.kind]))}\n`).join('')
  return `${JSON.stringify(ordered({ ...head, checksum: checksumOf(lines) }, HEAD))}\n${lines}`
}

/** @throws TapeFault */
export function readTape(bytes: Buffer): Tape {
  if (bytes.length > TAPE_LIMITS.bytes) throw new TapeFault(`has more than ${TAPE_LIMITS.bytes / 1_048_576} MiB`)
  let from = 0
  let head: TapeHead | undefined
  const steps: TapeStep[] = []
  const body = createHash('sha256')
  for (let number = 1; from < bytes.length; number++) {
    const at = bytes.indexOf(10, from)
    const to = at === -1 ? bytes.length : at
    if (to - from > TAPE_LIMITS.lineBytes || number > TAPE_LIMITS.lines) throw tooLarge(number)
    const line = bytes.subarray(from, to)
    from = to + 1
    if (head) {
      body.update(line).update('\n')
      steps.push(stepOf(parsedLine(line, number), number))
    } else head = headOf(parsedLine(line, number))
  }
  if (!head) throw new TapeFault('is empty')
  if (body.digest('hex') !== head.checksum) {
    throw new TapeFault('was changed after it was written: its checksum differs. Write it again with `tacho tape`')
  }
  const numbers = new Set(steps.map(({ step }) => step))
  if (numbers.size !== steps.length || steps.some(({ step }, index) => step !== index + 1)) {
    throw new TapeFault('has steps that are not numbered 1, 2, 3, …')
  }
  return { head, steps }
}

function tooLarge(number: number): TapeFault {
  return new TapeFault(
    number > TAPE_LIMITS.lines
      ? `has more than ${TAPE_LIMITS.lines} lines`
      : `has a line ${number} of more than ${TAPE_LIMITS.lineBytes / 1_048_576} MiB`,
  )
}

function parsedLine(line: Buffer, number: number): Json {
  if (depthOf(line) > TAPE_LIMITS.depth) throw new TapeFault(`line ${number}: is nested too deeply`)
  let value: unknown
  try {
    value = JSON.parse(line.toString())
  } catch {
    throw new TapeFault(`line ${number}: is not JSON`)
  }
  if (!isObject(value)) throw new TapeFault(`line ${number}: is not an object`)
  return value
}

/** Nesting depth of a line. Checked before parsing, because readers of nested values recurse. */
function depthOf(line: Buffer): number {
  let depth = 0
  let deepest = 0
  let isText = false
  for (let at = 0; at < line.length; at++) {
    const byte = line[at]
    if (isText) {
      if (byte === 0x5c) at++
      else if (byte === 0x22) isText = false
    } else if (byte === 0x22) isText = true
    else if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth)
    else if (byte === 0x5d || byte === 0x7d) depth--
  }
  return deepest
}

/** Returns true for a valid value; a text describes the fault, after the member's name. */
type Check = (value: unknown) => boolean | string
interface Member {
  name: string
  isOptional: boolean
  check: Check
}
/** Members in the order of writing. */
type Members = ReadonlyMap<string, Member>

/** A name that ends with `?` is optional. */
function membersOf(checks: Readonly<Record<string, Check>>): Members {
  return new Map(
    Object.entries(checks).map(([written, check]) => {
      const name = written.replace('?', '')
      return [name, { name, isOptional: name !== written, check }]
    }),
  )
}

const isText: Check = (value) => typeof value === 'string'
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0
const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value)
const isTrue: Check = (value) => value === true
const isAny: Check = () => true
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText)
const listOf =
  (members: Members): Check =>
  (value) =>
    Array.isArray(value) && value.every((item: unknown) => isObject(item) && faultIn(item, members) === undefined)
const isStatus: Check = (value) => isHttpStatus(value) || ' must be a status of an HTTP answer, from 200 to 599'

const OBSTACLE = membersOf({ step: isCount, why: isText })
const PROMPT = membersOf({
  name: isText,
  promptId: isText,
  version: isText,
  versionId: isText,
  hash: isText,
  content: isText,
})
const POLICY = membersOf({
  policyId: isText,
  name: isText,
  'description?': isText,
  version: isText,
  condition: isText,
  severity: isText,
  action: isText,
  'onError?': isText,
  'hash?': isText,
})
const LABEL = membersOf({ tool: isText, 'output?': isTexts, 'does?': isTexts, 'when?': isText })
const RECORDERS = ['sdk', 'wire', 'otlp']
const HEAD = membersOf({
  tape: (value) => value === TAPE_VERSION,
  run: isText,
  agent: isText,
  recordedBy: (value) => RECORDERS.includes(value as string),
  outcome: isText,
  checksum: isText,
  replayable: (value) => value === true || listOf(OBSTACLE)(value),
  prompts: listOf(PROMPT),
  policies: listOf(POLICY),
  'labels?': listOf(LABEL),
})

const WIRE = membersOf({
  protocol: isText,
  status: isStatus,
  isStream: (value) => typeof value === 'boolean',
  body: isText,
})
const TIMED = { step: isCount, kind: isText, from: isCount, to: isCount, 'agent?': isText, 'within?': isCount }
const MEMBERS: Readonly<Record<TapeStep['kind'], Members>> = {
  model: membersOf({
    ...TIMED,
    'model?': isText,
    'messages?': isAny,
    'output?': isAny,
    'toolCalls?': isAny,
    'finishReason?': isAny,
    'usage?': isAny,
    'cost?': isNumber,
    'latency?': isNumber,
    'streamed?': isTrue,
    'error?': isAny,
    'wire?': (value) => {
      const fault = isObject(value) && faultIn(value, WIRE)
      return fault === undefined || (fault && `.${fault}`)
    },
  }),
  tool: membersOf({
    ...TIMED,
    tool: isText,
    'input?': isAny,
    'inputHash?': isText,
    outcome: isText,
    'output?': isAny,
    'error?': isAny,
    'callId?': isText,
    'askedBy?': isCount,
    'latency?': isNumber,
    'unguarded?': isTrue,
  }),
  decision: membersOf({ ...TIMED, tool: isText, action: isText, policies: isTexts, 'input?': isAny }),
  approval: membersOf({ ...TIMED, tool: isText, 'inputHash?': isText, status: isText, 'reason?': isText }),
  input: membersOf({ ...TIMED, text: isAny }),
  end: membersOf({ ...TIMED, status: isText, 'error?': isAny }),
}

function headOf(line: Json): TapeHead {
  const { tape } = line
  if (tape === undefined) throw new TapeFault('is not a tape: its first line has no `tape`')
  if (tape !== TAPE_VERSION) {
    throw new TapeFault(`is of version ${JSON.stringify(tape)}; this program reads version ${TAPE_VERSION}`)
  }
  const fault = faultIn(line, HEAD)
  if (fault !== undefined) throw new TapeFault(`line 1: ${fault}`)
  return line as unknown as TapeHead
}

function stepOf(line: Json, number: number): TapeStep {
  const { kind } = line
  const members =
    typeof kind === 'string' && Object.hasOwn(MEMBERS, kind) ? MEMBERS[kind as TapeStep['kind']] : undefined
  const fault = members ? faultIn(line, members) : `kind must be one of ${Object.keys(MEMBERS).join(', ')}`
  if (fault !== undefined) throw new TapeFault(`line ${number}: ${fault}`)
  return line as unknown as TapeStep
}

/** Whether a value is the status of a complete HTTP response. */
export function isHttpStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 200 && (value as number) < 600
}

/** The fault of a line. It names the member, never its value. */
function faultIn(line: Json, members: Members): string | undefined {
  for (const { name, isOptional, check } of members.values()) {
    if (!Object.hasOwn(line, name)) {
      if (!isOptional) return `${name} is missing`
      continue
    }
    const result = check(line[name])
    if (result !== true) return `${name}${result || ' has a wrong value'}`
  }
  const other = Object.keys(line).find((name) => !members.has(name))
  return other === undefined ? undefined : `has an unknown member ${JSON.stringify(other.slice(0, 40))}`
}

function ordered(value: object, members: Members): object {
  return Object.fromEntries(
    [...members.keys()].flatMap((name) => {
      const member = (value as Json)[name]
      return member === undefined ? [] : [[name, member]]
    }),
  )
}

function checksumOf(lines: string): string {
  return createHash('sha256').update(lines).digest('hex')
}
