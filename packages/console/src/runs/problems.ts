/** What went wrong in a run, or was held back, and at which step. */
import { queryOptions, useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../api.ts'
import { inShort, isObject, textAt, type Json } from '@tacho/contract/read-payload.ts'
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

/** Payloads that are read to find failed tools, blocked calls and the words of errors. */
const PAYLOADS_READ = 150
/** Below the connections of a browser: the payload of a step that a person opens need not wait for all of these. */
const READ_AT_ONCE = 4
const MAY_TELL = new Set(['TOOL_CALL', 'POLICY_DECISION', 'ERROR'])
const NOTHING: ReadonlyMap<string, Told> = new Map()

/** Errors of the whole run; failed tools and decisions among its first calls. */
export function useProblems(environmentId: string, runId: string, steps: readonly Step[]): Problem[] {
  const cache = useQueryClient()
  const looked = useMemo(
    () => steps.filter(({ eventType }) => MAY_TELL.has(eventType)).slice(0, PAYLOADS_READ),
    [steps],
  )
  const { data: told = NOTHING } = useQuery(toldQuery(cache, environmentId, runId, looked))
  return useMemo(
    () =>
      steps.flatMap((step) => {
        const said = told.get(step.eventId) ?? (step.eventType === 'ERROR' ? ERROR : null)
        return said ? [{ ...said, text: said.text(step.label), step }] : []
      }),
    [steps, told],
  )
}

/** One query for all of them: a page with an observer for each payload would take long to draw. */
function toldQuery(cache: QueryClient, environmentId: string, runId: string, looked: readonly Step[]) {
  return queryOptions({
    queryKey: ['problems', environmentId, runId, looked.length, looked.at(-1)?.eventId],
    queryFn: async (): Promise<ReadonlyMap<string, Told>> => {
      const told = new Map<string, Told>()
      const waiting = looked.values()
      const readInTurn = async () => {
        for (const { eventId, eventType, label } of waiting) {
          const { event } = await cache.fetchQuery(eventQuery(environmentId, runId, eventId))
          const said = toldBy(eventType, label, isObject(event.payload) ? event.payload : {})
          if (said) told.set(eventId, said)
        }
      }
      await Promise.all(Array.from({ length: READ_AT_ONCE }, readInTurn))
      return told
    },
    // Keep the reasons of earlier steps on screen while new steps of the same run are read.
    placeholderData: (before, query) => (query?.queryKey[2] === runId ? before : undefined),
    structuralSharing: false,
    staleTime: Infinity,
    gcTime: 60_000,
  })
}

const ERROR: Told = { tone: 'red', word: 'error', why: '', text: (label) => label }

function toldBy(eventType: string, label: string, payload: Json): Told | null {
  if (eventType === 'ERROR') {
    const why = firstLine(textAt(payload, 'message'))
    return { ...ERROR, why: why === label ? '' : why }
  }
  if (eventType === 'TOOL_CALL') {
    const { error } = payload
    if (error === undefined || error === null || error === false) return null
    return { tone: 'red', word: 'failed', why: firstLine(error), text: (name) => `${name} failed` }
  }
  const action = textAt(payload, 'action')
  const tool = textAt(payload, 'toolName') ?? label
  if (action === 'BLOCK') return { tone: 'red', word: 'blocked', why: '', text: () => `${tool} blocked` }
  if (action !== 'REQUIRE_APPROVAL') return null
  return { tone: 'amber', word: 'needed approval', why: '', text: () => `${tool} needed approval` }
}

/** The first line of an error, which is a text, an object with a message, or anything else. */
function firstLine(error: unknown): string {
  if (error === null || error === true) return ''
  const text = isObject(error) ? (textAt(error, 'message') ?? error) : error
  return (
    inShort(text)
      .trim()
      .split(/[\r\n]/, 1)[0] ?? ''
  )
}

/** Issues in which this run occurred. */
export function useIssuesOfRun(environmentId: string, runId: string) {
  return useQuery({
    queryKey: ['issues of run', environmentId, runId],
    queryFn: () => api.listIssues({ params: { environmentId }, query: { runId, limit: 20 } }),
  })
}
