/** Sample erasures, and sample events for them to erase. */
import assert from 'node:assert/strict'
import { advanceErasure } from '../../../../src/domain/data/erasure.ts'
import type { ErasureRow, NewErasure } from '../../../../src/storage/data/erasures.ts'
import { payloadText, type NewEvent } from '../../../../src/storage/record/events.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { event, HOUR, llmCall, newId, NOON } from '../sample.ts'

export const LATER = NOON + 60_000
export const AGENT = '00000000-0000-0000-0000-000000000000'

export type Subject = Partial<NewErasure> & Pick<NewErasure, 'kind' | 'subject'>

export function newErasure(environmentId: string, given: Subject): NewErasure {
  return {
    id: newId(),
    environmentId,
    field: null,
    subjectHash: 'hash',
    reason: null,
    requestedBy: {
      kind: 'token',
      id: 'token-1',
      name: 'script',
      workspaceId: newId(),
      requestId: 'request',
      address: null,
    },
    createdAt: LATER,
    toSearch: 0,
    ...given,
  }
}

export async function erase(storage: Storage, environmentId: string, given: Subject): Promise<ErasureRow> {
  const { id } = await storage.createErasure(newErasure(environmentId, given), [])
  const erasure = await advanceErasure(storage, { environmentId, id, now: () => LATER, isOver: () => false })
  assert.equal(erasure?.status, 'REMOVING')
  return erasure
}

export async function deleteAll(
  storage: Storage,
  { environmentId, id }: ErasureRow,
  limit = 1_000,
): Promise<ErasureRow> {
  for (let round = 0; round < 1_000; round++) {
    const erasure = await storage.deleteErased(environmentId, id, limit, LATER)
    if (erasure?.status !== 'REMOVING') return erasure!
  }
  throw new Error('The deletion does not end')
}

export async function runIds(storage: Storage, environmentId: string): Promise<string[]> {
  const { rows } = await storage.listRuns(environmentId, {}, { limit: 100, after: null })
  return rows.map(({ runId }) => runId).toSorted()
}

export async function usage(storage: Storage, environmentId: string) {
  const { rows } = await storage.readUsage(environmentId, NOON - HOUR, NOON + HOUR, { limit: 100, after: null })
  return rows.map(({ model, events, totalTokens, costNanos }) => ({ model, events, totalTokens, costNanos }))
}

export const call = (given: Partial<NewEvent>, tokens = 7) => {
  const sent = { model: 'model-a', latency: 20, usage: { totalTokens: tokens }, cost: 0.5 }
  const counted = { model: 'model-a', totalTokens: tokens, costNanos: 500_000_000 }
  return llmCall(counted, { latencyMs: 20, payload: JSON.stringify(sent), ...given })
}

export const toolCall = (given: Partial<NewEvent>) => {
  const sent = { toolName: 'pay', latency: 20, error: 'refused', ...JSON.parse(payloadText(given.payload ?? '{}')) }
  const toolUse = { tool: 'pay', problem: 'error' as const }
  return event({ eventType: 'TOOL_CALL', toolUse, latencyMs: 20, ...given, payload: JSON.stringify(sent) })
}

export const blocked = (given: Partial<NewEvent>) => {
  const payload = '{"toolName":"pay","action":"BLOCK"}'
  return event({ eventType: 'POLICY_DECISION', toolUse: { tool: 'pay', problem: 'blocked' }, ...given, payload })
}

export async function tools(storage: Storage, environmentId: string) {
  const window = { by: 'tool', from: NOON - HOUR, to: NOON + 2 * HOUR, stepMs: 3 * HOUR } as const
  const tenant = { environmentId, workspaceId: newId() }
  const { rows } = await storage.readUsagePoints(tenant, window, { limit: 100, after: null })
  return rows.map(({ name, events, calls, tool }) => [name, events, calls, tool?.calls])
}
