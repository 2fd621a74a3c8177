/** Short notes from a step's payload, beside its label, such as "asks for refund". Read only for visible rows. */
import { askedCalls, isFailedCall, unusualEnd } from '@tacho/contract/runs/call-life.ts'
import { whyCancelled } from '@tacho/contract/issues/failure.ts'
import { contentText, inShort, isObject, messagesAt, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { callInShort, pathEnd, toldCall } from '@tacho/contract/runs/call-text.ts'
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { plainText } from '../../web/text/format.ts'
import { eventQuery, type Step } from '../queries.ts'

const MAY_NOTE = new Set([
  'USER_INPUT',
  'AGENT_STEP',
  'TOOL_START',
  'TOOL_CALL',
  'POLICY_DECISION',
  'APPROVAL_WITHDRAWN',
  'HANDOFF',
  'LLM_CALL',
  'SESSION_OUTCOME',
])
/** Largest payload to read for a note. */
const NOTED_BYTES = 65_536
const NOTE_CHARS = 140
/** Wait before reading, so that rows that are scrolled past read nothing. */
const SETTLED_MS = 150
/** Fewer than a browser's connections, so that a step that a person opens need not wait for all notes. */
const READ_AT_ONCE = 4

export interface OfRun {
  environmentId: string
  runId: string
}

export interface NotesOf extends OfRun {
  /** Whether the problems of the run were read. Notes are read after them. */
  areProblemsRead: boolean
}

/** The note of a step. Empty until it is read, and for a step without a note. */
export function useNote(ofRun: NotesOf, step: Step): string {
  const cache = useQueryClient()
  const isSettled = useSettled()
  const mayNote = MAY_NOTE.has(step.eventType) && step.payloadBytes <= NOTED_BYTES
  return (
    useQuery({ ...noteQuery(cache, ofRun, step), enabled: ofRun.areProblemsRead && isSettled && mayNote }).data ?? ''
  )
}

function useSettled(): boolean {
  const [isSettled, setSettled] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLED_MS)
    return () => clearTimeout(timer)
  }, [])
  return isSettled
}

function noteQuery(cache: QueryClient, { environmentId, runId }: OfRun, { eventId, eventType, label }: Step) {
  return queryOptions({
    queryKey: ['note', environmentId, runId, eventId],
    queryFn: ({ signal }) =>
      inTurn(signal, async () => {
        const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, eventId))
        return noteOf(eventType, label, isObject(event.payload) ? event.payload : {})
      }),
    staleTime: Infinity,
    gcTime: 60_000,
  })
}

let reading = 0
const waiting: (() => void)[] = []

async function inTurn<Result>(signal: AbortSignal, read: () => Promise<Result>): Promise<Result> {
  if (reading >= READ_AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve))
  else reading++
  try {
    signal.throwIfAborted()
    return await read()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else reading--
  }
}

export function noteOf(eventType: string, label: string, payload: Json): string {
  const agent = textAt(payload, 'agent')
  const note = noteOn(eventType, label, payload)
  return agent === null ? note : inShort(note === '' ? `by ${agent}` : `by ${agent}: ${note}`, NOTE_CHARS)
}

function noteOn(eventType: string, label: string, payload: Json): string {
  if (eventType === 'USER_INPUT' || eventType === 'AGENT_STEP') return textBeside(label, payload)
  if (eventType === 'POLICY_DECISION') {
    const tool = textAt(payload, 'toolName')
    if (toldCall({ input: payload['input'] })) return callInShort(payload, NOTE_CHARS, pathEnd)
    return tool === null || label.includes(tool) ? '' : `asks for ${tool}`
  }
  if (eventType === 'APPROVAL_WITHDRAWN') return inShort(withdrawnText(payload))
  if (eventType === 'HANDOFF') return handOffText(label, payload)
  if (eventType === 'TOOL_CALL') {
    const end = unusualEnd(eventType, payload)
    // A failed call needs no note: its mark already has the reason.
    if (end !== null) return isFailedCall(payload) ? '' : end
    const call = callInShort(payload, NOTE_CHARS, pathEnd)
    // Leave out JSON, which only the step itself shows.
    return /^[[{]/.test(call) ? '' : call
  }
  const why = whyCancelled(eventType, payload)
  if (why !== null) return inShort(why)
  if (eventType !== 'LLM_CALL') return ''
  const asked = messagesAt(payload, 'output').flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name))
  // Include calls that never ran, because they may appear nowhere else.
  asked.push(...askedCalls(payload).map(({ name }) => name))
  return asked.length === 0 ? '' : inShort(`asks for ${[...new Set(asked)].join(', ')}`)
}

export function withdrawnText(payload: Json): string {
  const reason = textAt(payload, 'reason')
  return `nobody waits for the approval any more${reason === null ? '' : `: ${reason.replaceAll('_', ' ')}`}`
}

function handOffText(label: string, payload: Json): string {
  const [from, to] = [textAt(payload, 'from'), textAt(payload, 'to')]
  return to === null || label.includes(to) ? '' : inShort(`from ${from ?? '?'} to ${to}`)
}

/** The beginning of a text whose label does not show it, such as "user prompt". */
function textBeside(label: string, payload: Json): string {
  const text = (textAt(payload, 'text') ?? contentText(payload['content'])).replace(/\s+/g, ' ').trim()
  return text.startsWith(label.replace(/…$/, '')) ? '' : plainText(inShort(text, NOTE_CHARS))
}

/**
 * Types whose label is something that was said. Labels of other types are names, in which quotation marks belong to the
 * name.
 */
const SAYS = new Set(['USER_INPUT', 'LLM_CALL', 'AGENT_STEP'])

/** The label of a step in a list. */
export const stepName = ({ eventType, label }: { eventType: string; label: string }): string =>
  SAYS.has(eventType) ? plainText(label) : label
