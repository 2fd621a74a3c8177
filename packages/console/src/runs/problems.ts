/** What went wrong in a run, or was held back, and at which step. */
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../api.ts'
import { failureLine, failureOf, whyCancelled } from '@tacho/contract/failure.ts'
import { inShort, isObject, messagesAt, textAt, type Json } from '@tacho/contract/read-payload.ts'
import { callInShort, decisionReason, toldCall } from '@tacho/contract/told-call.ts'
import { eventQuery, type Step } from './run-queries.ts'

export interface Problem {
  tone: 'red' | 'amber'
  text: string
  /** In the row of its step. */
  word: string
  /** The first line of the error; empty if the row already says it. */
  why: string
  step: Step
}

type Told = Pick<Problem, 'tone' | 'word' | 'why'> & { text: (label: string) => string }

/** What the payload of a step says in its row. */
interface Said {
  problem: Told | null
  /** Such as "asks for refund". */
  note: string
}

/** Payloads that are read to find failures, blocked calls and what models ask for. */
const PAYLOADS_READ = 150
/** Below the connections of a browser: the payload of a step that a person opens need not wait for all of these. */
const READ_AT_ONCE = 4
const MAY_TELL = new Set(['TOOL_CALL', 'POLICY_DECISION', 'ERROR'])
/** Of these fewer, because they fail rarely. */
const SELDOM_TELL = new Set(['LLM_CALL', 'AGENT_STEP'])
const SELDOM_READ = 60
/** A long conversation is not worth its note. */
const NOTED_BYTES = 65_536
const NOTE_CHARS = 140
const NOTHING: ReadonlyMap<string, Said> = new Map()

export interface Sayings {
  problems: Problem[]
  /** By event id. */
  notes: ReadonlyMap<string, string>
}

/** Errors of the whole run, and tools that never ended; what the payloads of its first calls and of its end say. */
export function useProblems(
  environmentId: string,
  runId: string,
  steps: readonly Step[],
  lost: ReadonlySet<string>,
): Sayings {
  const cache = useQueryClient()
  const looked = useMemo(() => {
    const isShort = ({ eventType, payloadBytes }: Step) => SELDOM_TELL.has(eventType) && payloadBytes <= NOTED_BYTES
    return [
      ...steps.filter(({ eventType }) => eventType === 'SESSION_OUTCOME').slice(-1),
      ...steps.filter(({ eventType }) => MAY_TELL.has(eventType)).slice(0, PAYLOADS_READ),
      ...steps.filter(isShort).slice(0, SELDOM_READ),
    ]
  }, [steps])
  const { data: said = NOTHING } = useQuery(saidQuery(cache, environmentId, runId, looked))
  return useMemo(() => {
    const problems = steps.flatMap((step) => {
      const known = step.eventType === 'ERROR' ? ERROR : lost.has(step.eventId) ? LOST : null
      const told = said.get(step.eventId)?.problem ?? known
      return told ? [{ ...told, text: told.text(step.label), step }] : []
    })
    return { problems, notes: new Map([...said].map(([eventId, { note }]) => [eventId, note])) }
  }, [steps, said, lost])
}

/** One query for all of them: a page with an observer for each payload would take long to draw. */
function saidQuery(cache: QueryClient, environmentId: string, runId: string, looked: readonly Step[]) {
  return queryOptions({
    queryKey: ['problems', environmentId, runId, looked.length, looked.at(-1)?.eventId],
    queryFn: async (): Promise<ReadonlyMap<string, Said>> => {
      const said = new Map<string, Said>()
      const waiting = looked.values()
      const readInTurn = async () => {
        for (const { eventId, eventType, label } of waiting) {
          const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, eventId))
          said.set(eventId, saidBy(eventType, label, isObject(event.payload) ? event.payload : {}))
        }
      }
      await Promise.all(Array.from({ length: READ_AT_ONCE }, readInTurn))
      return said
    },
    // Keep the reasons of earlier steps on screen while new steps of the same run are read.
    placeholderData: (before, query) => (query?.queryKey[2] === runId ? before : undefined),
    structuralSharing: false,
    staleTime: Infinity,
    gcTime: 60_000,
  })
}

const LOST: Told = {
  tone: 'red',
  word: 'never ended',
  why: '',
  text: (label) => `${label} started, never ended`,
}
const ERROR: Told = { tone: 'red', word: 'error', why: '', text: (label) => label }

export function saidBy(eventType: string, label: string, payload: Json): Said {
  return { problem: problemOf(eventType, label, payload), note: noteOf(eventType, label, payload) }
}

function problemOf(eventType: string, label: string, payload: Json): Told | null {
  if (eventType !== 'POLICY_DECISION') return failedBy(eventType, label, payload)
  const action = textAt(payload, 'action')
  const tool = textAt(payload, 'toolName') ?? label
  const why = reasonOf(payload)
  if (action === 'BLOCK') return { tone: 'red', word: 'blocked', why, text: () => `${tool} blocked` }
  if (action !== 'REQUIRE_APPROVAL') return null
  return { tone: 'amber', word: 'needed approval', why, text: () => `${tool} needed approval` }
}

function failedBy(eventType: string, label: string, payload: Json): Told | null {
  const failure = failureOf({ eventType, label, payload })
  if (failure === null) return null
  const line = failureLine(failure, null)
  if (eventType === 'ERROR') return { ...ERROR, why: line === label ? '' : line }
  const text = (name: string) => (eventType === 'SESSION_OUTCOME' ? 'run failed' : `${name} failed`)
  return { tone: 'red', word: 'failed', why: line, text }
}

/** Which policy held a call back, and why. */
function reasonOf(payload: Json): string {
  const { policyIds } = payload
  const ids = Array.isArray(policyIds) ? policyIds.filter((id) => typeof id === 'string') : []
  const parts = [ids.length === 0 ? '' : `by ${ids.join(', ')}`, inShort(decisionReason(payload))]
  return parts.filter((part) => part !== '').join(': ')
}

function noteOf(eventType: string, label: string, payload: Json): string {
  if (eventType === 'POLICY_DECISION') {
    const tool = textAt(payload, 'toolName')
    if (toldCall({ input: payload['input'] })) return callInShort(payload, NOTE_CHARS)
    return tool === null || label.includes(tool) ? '' : `asks for ${tool}`
  }
  if (eventType === 'TOOL_CALL') {
    const call = callInShort(payload, NOTE_CHARS)
    // JSON is for the step itself.
    return /^[[{]/.test(call) ? '' : call
  }
  const why = whyCancelled(eventType, payload)
  if (why !== null) return inShort(why)
  if (eventType !== 'LLM_CALL') return ''
  const asked = messagesAt(payload, 'output').flatMap(({ toolCalls }) => toolCalls.map(({ name }) => name))
  return asked.length === 0 ? '' : inShort(`asks for ${[...new Set(asked)].join(', ')}`)
}

/** Issues in which this run occurred. */
export function useIssuesOfRun(environmentId: string, runId: string) {
  return useQuery({
    queryKey: ['issues of run', environmentId, runId],
    queryFn: () => api.listIssues({ params: { environmentId }, query: { runId, limit: 20 } }),
  })
}
