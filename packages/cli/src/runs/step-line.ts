/** Formats a step of a run on one line: its text or call, its duration and its cost. Pure, except for colours. */
import { askedCalls, callOutcome, reasonText, unusualEnd } from '@tacho/contract/runs/call-life.ts'
import type { EventRow } from '@tacho/contract/record/event.ts'
import { causeLines, failureLine, failureOf, whyCancelled, type Failure } from '@tacho/contract/issues/failure.ts'
import { duration, money } from '@tacho/contract/engine/format.ts'
import {
  contentText,
  inShort,
  isObject,
  messagesAt,
  numberAt,
  textAt,
  type Json,
} from '@tacho/contract/record/payload-reader.ts'
import { callInShort, decisionReason, outputInShort, pathEnd, toldCall } from '@tacho/contract/runs/call-text.ts'
import { EVENT_TYPE_WORDS } from '@tacho/contract/engine/words.ts'
import { cutEnd, pad, widthOf } from '../engine/text-width.ts'
import { type Look, toned, type Tone } from '../engine/display.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'

/** Facts about the run that the lines of its steps need. */
export interface Timeline {
  /** Start of the run in milliseconds. */
  startedAt: number
  /** Whether any step of the run has a cost. */
  hasCost: boolean
  /** Ids of the starts of tools that never ended. */
  neverEnded: Pick<ReadonlySet<string>, 'has'>
  /** Whether the lines below a step show texts and outputs. */
  isStory?: boolean
}

const MARKS = new Map<Tone | null, string>([
  ['red', '✕'],
  ['amber', '!'],
])
const SINCE_WIDTH = 10
const KIND_WIDTH = 10
const TOOK_WIDTH = 9
const COST_WIDTH = 8
/** Maximum number of characters of an input, an output or an answer. */
const BRIEF_CHARS = 300

/** Whether the step is an error, a failed outcome, a blocked call, or a tool that failed or never ended. */
export function isFailed(row: EventRow, payload: unknown, { neverEnded }: Pick<Timeline, 'neverEnded'>): boolean {
  return neverEnded.has(row.eventId) || problemTone(row.eventType, isObject(payload) ? payload : {}) === 'red'
}

export function stepHead({ hasCost }: Timeline, { width }: Look): string[] {
  if (width === null) return []
  const start = `  ${pad('SINCE', SINCE_WIDTH, 'right')}  ${pad('STEP', KIND_WIDTH)}  `
  const end = `  ${pad('TOOK', TOOK_WIDTH, 'right')}${hasCost ? `  ${pad('COST', COST_WIDTH, 'right')}` : ''}`
  return [toned('strong', `${start}${pad('WHAT', width - start.length - end.length)}${end}`)]
}

/** The line of one step. In a pipe: the exact time, the event type and the whole line. */
export function stepLine(row: EventRow, payload: unknown, timeline: Timeline, lineLook: Look): string {
  const { startedAt, hasCost, neverEnded } = timeline
  const fields: Json = isObject(payload) ? payload : {}
  const tone = isFailed(row, payload, timeline) ? 'red' : problemTone(row.eventType, fields)
  const mark = MARKS.get(tone) ?? ' '
  const subagent = textAt(fields, 'subagent') ?? textAt(fields, 'agent')
  const branch = subagent === null ? '' : `↳ ${subagent}: `
  const lineText = `${branch}${neverEnded.has(row.eventId) ? 'NEVER ENDED ' : ''}${stepText(row, fields, timeline.isStory === true)}`
  const text = printable(lineText.replace(/\s+/g, ' ').trim())
  const latency = row.latency ?? numberAt(fields, 'latency')
  const took = latency === null ? '' : duration(latency)
  const cost = numberAt(fields, 'cost')
  const spent = cost === null ? '' : money(cost)
  if (lineLook.width === null) {
    const facts = [took, spent === '' ? '' : `cost ${spent}`].filter((fact) => fact !== '')
    return [`${mark} ${row.timestamp}`, printable(row.eventType).padEnd(15), text, ...facts].join('  ').trimEnd()
  }
  const since = lineLook.isExact ? row.timestamp : `+${duration(Math.max(0, Date.parse(row.timestamp) - startedAt))}`
  const kind = cutEnd(printable(EVENT_TYPE_WORDS.get(row.eventType) ?? row.eventType), LONGEST_KIND)
  const start = `${mark} ${pad(since, SINCE_WIDTH, 'right')}  ${pad(kind, KIND_WIDTH)}  `
  const end = `  ${pad(took, TOOK_WIDTH, 'right')}${hasCost ? `  ${pad(spent, COST_WIDTH, 'right')}` : ''}`
  const room = Math.max(LEAST_TEXT, lineLook.width - widthOf(start) - widthOf(end))
  return `${toned(tone, `${start}${pad(cutEnd(text, room), room)}`)}${end.trim() === '' ? '' : toned('faint', end)}`.trimEnd()
}

const LONGEST_KIND = 15
const LEAST_TEXT = 10

function problemTone(eventType: string, payload: Json): Tone | null {
  if (eventType === 'POLICY_DECISION') {
    const action = textAt(payload, 'action')
    return action === 'BLOCK' ? 'red' : action === 'REQUIRE_APPROVAL' || action === 'WARN' ? 'amber' : null
  }
  if (eventType === 'APPROVAL_WITHDRAWN') return 'amber'
  if (eventType === 'TOOL_CALL' && callOutcome(payload) === 'did_not_report') return 'amber'
  return failureOf({ eventType, label: '', payload }) === null ? null : 'red'
}

function stepText({ eventType, label }: EventRow, payload: Json, isStory: boolean): string {
  const failure = failureOf({ eventType, label, payload })
  const isTold = failure !== null && (eventType !== 'SESSION_OUTCOME' || failureLine(failure, null) !== '')
  const isBelow = isStory && toldCall(payload) !== null
  const end = unusualEnd(eventType, payload)
  if (end !== null) return endedText(end, label, payload)
  if (isTold) return failedText(eventType, failure, payload, isBelow) || label
  switch (eventType) {
    case 'USER_INPUT':
      return isStory ? label : (textAt(payload, 'text') ?? label)
    case 'AGENT_STEP': {
      const text = textAt(payload, 'text') ?? contentText(payload['content'])
      return text === '' || isStory ? label : `${label}: ${inShort(text, BRIEF_CHARS)}`
    }
    case 'LLM_CALL':
      return modelText(label, payload)
    case 'TOOL_START':
    case 'TOOL_CALL':
      return toolText(label, payload, isBelow)
    case 'POLICY_DECISION':
      return policyText(label, payload, isBelow)
    case 'APPROVAL_WITHDRAWN': {
      const [tool, reason] = [textAt(payload, 'toolName') ?? label, textAt(payload, 'reason')]
      return `nobody waits for the approval of ${tool} any more${reason === null ? '' : `: ${reason.replaceAll('_', ' ')}`}`
    }
    case 'HANDOFF': {
      const [from, to] = [textAt(payload, 'from'), textAt(payload, 'to')]
      return to === null ? label : `${from ?? '?'} hands off to ${to}`
    }
    case 'SESSION_OUTCOME': {
      const status = textAt(payload, 'status')
      const statusText = status === null || status === label.toUpperCase() ? label : `${status}: ${label}`
      const why = whyCancelled(eventType, payload)
      return why === null ? statusText : `${statusText}: ${why}`
    }
    default:
      return label
  }
}

/** Begins with the error, because a terminal cuts the end of the line. */
function failedText(eventType: string, failure: Failure, payload: Json, isBelow: boolean): string {
  const { error, input } = payload
  const failureText = failureLine(failure, null) || (isObject(error) ? brief(error) : '')
  // The last cause is the origin of the failure.
  const why = [failureText, ...causeLines(failure).slice(-1)].filter((linePart) => linePart !== '').join(', ')
  if (eventType === 'ERROR') return why
  const head = ['FAILED', failure.place.name ?? ''].filter((linePart) => linePart !== '').join(' ')
  const sent =
    eventType === 'TOOL_CALL' && input !== undefined && !isBelow
      ? `, input ${callInShort(payload, BRIEF_CHARS, pathEnd)}`
      : ''
  return `${[head, why].filter((linePart) => linePart !== '').join(': ')}${sent}`
}

/**
 * Formats a call that neither returned nor failed: `NEVER RAN: UNKNOWN TOOL refund: There is no such tool {"order":7}`.
 */
function endedText(end: string, label: string, payload: Json): string {
  const { error } = payload
  const why = isObject(error) ? (textAt(error, 'message') ?? '') : typeof error === 'string' ? error : ''
  const sent = textAt(payload, 'arguments') ?? callInShort(payload, BRIEF_CHARS, pathEnd)
  const head = `${end.toUpperCase()} ${textAt(payload, 'toolName') ?? label}`
  return [why === '' ? head : `${head}: ${inShort(why, BRIEF_CHARS)}`, inShort(sent, BRIEF_CHARS)].join(' ').trimEnd()
}

function modelText(label: string, payload: Json): string {
  const messageLines = messagesAt(payload, 'output').flatMap(({ text, toolCalls }) => [
    ...(text === '' ? [] : [inShort(text, BRIEF_CHARS)]),
    ...toolCalls.map(({ name, input }) => `asks for ${name} ${brief(input)}`),
  ])
  // Include calls that never ran, with their arguments as received.
  for (const call of askedCalls(payload)) {
    if (call.problem !== null)
      messageLines.push(`${call.name}, ${reasonText(call.problem)}: ${brief(call.arguments ?? '')}`)
  }
  const model = textAt(payload, 'model') ?? label
  return messageLines.length === 0 ? model : `${model}: ${messageLines.join('; ')}`
}

function toolText(label: string, payload: Json, isBelow: boolean): string {
  const name = textAt(payload, 'toolName') ?? label
  if (isBelow) return `${name} ${editInShort(payload)}`.trimEnd()
  const call = `${name} ${callInShort(payload, BRIEF_CHARS, pathEnd)}`.trimEnd()
  const output = outputInShort(payload, BRIEF_CHARS)
  return output === '' ? call : `${call} → ${output}`
}

/** The file of an edit. Commands are shown below their step if there is room. */
function editInShort(payload: Json): string {
  return toldCall(payload)?.is === 'edit' ? callInShort(payload, BRIEF_CHARS, pathEnd) : ''
}

function policyText(label: string, payload: Json, isBelow: boolean): string {
  const policies = Array.isArray(payload['policyIds']) ? payload['policyIds'] : []
  const by = policies.length === 0 ? '' : ` by ${policies.filter((id) => typeof id === 'string').join(', ')}`
  const name = textAt(payload, 'toolName') ?? label
  const reason = decisionReason(payload)
  const asked = isBelow ? editInShort(payload) : callInShort(payload, BRIEF_CHARS, pathEnd)
  const call = `${textAt(payload, 'action') ?? ''} ${name}${by}`.trim()
  return [call, reason === '' ? '' : `: ${inShort(reason, BRIEF_CHARS)}`, asked === '' ? '' : ` ${asked}`].join('')
}

function brief(value: unknown): string {
  return value === undefined ? '' : inShort(value, BRIEF_CHARS)
}
