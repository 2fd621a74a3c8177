/** Which messages of a model call were sent with the call before it: a long conversation repeats all of them. */
import { isObject, messagesAt } from '@tacho/contract/record/payload-reader.ts'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { OfRun } from './notes.ts'
import { eventQuery, type Step, type WholeEvent } from '../queries.ts'

/** How many messages at the beginning of `whole` are those of `before`. */
export function useSentBefore(
  { environmentId, runId }: OfRun,
  whole: WholeEvent | undefined,
  before: Step | undefined,
): number {
  const { data } = useQuery({
    ...eventQuery(environmentId, runId, before?.eventId ?? ''),
    enabled: before !== undefined,
  })
  return useMemo(() => (whole && data ? sameAtStart(data.event.payload, whole.event.payload) : 0), [whole, data])
}

export function sameAtStart(before: unknown, now: unknown): number {
  const [earlier, later] = [before, now].map((payload) => (isObject(payload) ? messagesAt(payload, 'messages') : []))
  const texts = (earlier ?? []).map((message) => JSON.stringify(message))
  const at = texts.findIndex((text, index) => text !== JSON.stringify(later?.[index]))
  return at === -1 ? texts.length : at
}
