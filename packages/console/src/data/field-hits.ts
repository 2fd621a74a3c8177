/** Finds the fields of recorded payloads that contain an id, so that people need not know them by heart. */
import { queryOptions } from '@tanstack/react-query'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { isRecordedNumber, parseRecorded } from '@tacho/contract/record/json-text.ts'
import { api } from '../web/api.ts'
import { eventQuery } from '../runs/queries.ts'
import type { QueryClient } from '@tanstack/react-query'

const DEEPEST = 8
const PATHS = 6
/** Wait after the last key, so that only the finished id is searched for. */
const TYPING_MS = 300

export interface FieldHits {
  /** Paths such as `customer.id`, the most frequent first. */
  fields: { path: string; steps: number }[]
  /** Number of steps that were read: the newest ones with the id. */
  read: number
  more: boolean
}

/** Null: the id contains no word that can be searched for. */
export const fieldHitsQuery = (cache: QueryClient, environmentId: string, id: string) =>
  queryOptions({
    queryKey: ['fields with an id', environmentId, id],
    queryFn: async ({ signal }): Promise<FieldHits | null> => {
      if (!/[\p{L}\p{N}]/u.test(id)) return null
      await new Promise((resolve) => setTimeout(resolve, TYPING_MS))
      signal.throwIfAborted()
      const { items, more } = await api.findErasableSteps({ params: { environmentId }, body: { id } }, { signal })
      const events = await Promise.all(
        items.map(({ runId, eventId }) => cache.fetchQuery(eventQuery(environmentId, runId, eventId))),
      )
      const steps = new Map<string, number>()
      for (const { payloadText } of events)
        for (const path of pathsOf(parseRecorded(payloadText), id)) steps.set(path, (steps.get(path) ?? 0) + 1)
      const fields = [...steps].map(([path, count]) => ({ path, steps: count })).sort((a, b) => b.steps - a.steps)
      return { fields: fields.slice(0, PATHS), read: events.length, more }
    },
    retry: false,
    gcTime: 0,
  })

/** Paths do not contain list indexes, because an erasure searches all items of a list. */
export function pathsOf(payload: unknown, id: string): Set<string> {
  const paths = new Set<string>()
  const collect = (value: unknown, path: readonly string[]): void => {
    if (Array.isArray(value)) for (const item of value) collect(item, path)
    else if (value === id || (isRecordedNumber(value) && JSON.stringify(value) === id)) {
      // A name that contains a dot cannot be part of a path.
      if (path.length > 0 && path.every((key) => key !== '' && !key.includes('.'))) paths.add(path.join('.'))
    } else if (isObject(value) && path.length < DEEPEST)
      for (const [key, member] of Object.entries(value)) collect(member, [...path, key])
  }
  collect(payload, [])
  return paths
}
