/**
 * Details below the line of a coding agent's step: texts, the output of a command, an edit as a difference. Pure, except for
 * colours.
 */
import { isFailedCall } from '@tacho/contract/runs/call-life.ts'
import { contentText, isObject, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { toldCall, type DiffLine } from '@tacho/contract/runs/call-text.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { stateText } from '../approvals/approval-lines.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { toned, toneOf, type Tone } from '../engine/display.ts'

/** Maximum number of lines below a step: the first ones, and of an output also the last ones. */
const LINES_MAX = 40
const LAST_LINES = 8
const LINE_CHARS = 400
const INDENT = '      '
const TAB = '    '

/** @param approvals the run's approvals, by id. */
export function storyLines(
  eventType: string,
  payload: unknown,
  approvals: ReadonlyMap<string, OperatorApproval>,
  now: number,
): string[] {
  if (!isObject(payload)) return []
  const approval = approvals.get(textAt(payload, 'approvalId') ?? '')
  const lines = [
    ...bounded(linesOf(eventType, payload)),
    ...(approval && eventType === 'POLICY_DECISION' ? [decided(approval, now)] : []),
  ]
  return lines.map((line) => `${INDENT}${line}`.trimEnd())
}

function linesOf(eventType: string, payload: Json): string[] {
  if (eventType === 'TOOL_CALL' || payload['input'] !== undefined) return callLines(payload)
  if (eventType !== 'USER_INPUT' && eventType !== 'AGENT_STEP') return []
  return plain(textAt(payload, 'text') ?? contentText(payload['content']), null)
}

function decided(approval: OperatorApproval, now: number): string {
  return toned(toneOf(approval.status), safe(`${approval.status} ${stateText(approval, now)}`))
}

function callLines(payload: Json): string[] {
  const callFacts = toldCall(payload)
  if (callFacts === null) return []
  const failed = isFailedCall(payload)
  if (callFacts.is === 'command') {
    const command = plain(`$ ${callFacts.command}`, 'strong')
    return [...command, ...(callFacts.output === null ? [] : plain(callFacts.output, failed ? 'red' : 'faint'))]
  }
  return callFacts.hunks.flatMap((lines, index) => [...(index === 0 ? [] : ['⋯']), ...lines.map(diffLine)])
}

const SIGNS = { same: ' ', removed: '-', added: '+' } as const
const TONES = { same: 'faint', removed: 'red', added: 'green' } as const

function diffLine({ change, text }: DiffLine): string {
  return toned(TONES[change], safe(`${SIGNS[change]} ${text}`))
}

function plain(text: string, tone: Tone | null): string[] {
  if (text === '') return []
  return text.split(/\r?\n/).map((line) => toned(tone, safe(line)))
}

function safe(line: string): string {
  const cut = line.length > LINE_CHARS ? `${line.slice(0, LINE_CHARS)}…` : line
  return printable(cut.replaceAll('\t', TAB))
}

function bounded(lines: readonly string[]): readonly string[] {
  const left = lines.length - LINES_MAX
  if (left <= 1) return lines
  const more = toned('faint', `… ${left} more lines; --full has all`)
  return [...lines.slice(0, LINES_MAX - LAST_LINES), more, ...lines.slice(-LAST_LINES)]
}
