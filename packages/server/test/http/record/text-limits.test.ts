import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { approvalCalls } from '../../setup/approval-service.ts'
import { issueRecord, submit } from '../../setup/issue-service.ts'
import { startService } from '../../setup/service.ts'

interface Schema {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  maxLength?: number
  pattern?: string
  format?: string
  maxItems?: number
  items?: Schema
  properties?: Record<string, Schema>
  anyOf?: Schema[]
}

/** Places of a schema that accept texts or lists of any length. */
function unbounded(schema: Schema, place: string): string[] {
  const types = [schema.type ?? []].flat()
  const isText = types.includes('string') && !schema.enum && schema.const === undefined
  const found: string[] = []
  // A format of fixed length, or a pattern without `*` and `+`, is a bound.
  const isBounded =
    schema.maxLength !== undefined || schema.format !== undefined || /^[^*+]+$/.test(schema.pattern ?? '')
  if (isText && !isBounded) found.push(place)
  if (schema.items) {
    if (schema.maxItems === undefined) found.push(`${place}[]`)
    found.push(...unbounded(schema.items, `${place}[]`))
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    found.push(...unbounded(property, `${place}.${name}`))
  }
  for (const each of schema.anyOf ?? []) found.push(...unbounded(each, place))
  return found
}

/** Limited by their handlers: contents in bytes, conditions by the policy language. */
const BOUNDED_BY_HANDLERS = [
  'decideApproval.grant.condition',
  'createPrompt.content',
  'createPromptVersion.content',
  'createPolicy.condition',
  'createPolicyVersion.condition',
  'changeToolLabels.labels[].when',
  'createSimulation.condition',
  'createSimulation.toolLabels[].when',
]

test('every text and list in every request body has a maximum length', () => {
  const routes: [string, Route][] = [...Object.entries(ROUTES), ...Object.entries(OPERATOR_ROUTES)]
  const found = routes.flatMap(([name, { body }]) => (body ? unbounded(body as Schema, name) : []))
  assert.deepEqual(found, BOUNDED_BY_HANDLERS)
})

test('each text of an issue record or approval is accepted at its limit and refused one past it', async (t) => {
  const service = await startService()
  t.after(() => service.close())
  const { ask } = approvalCalls(service)
  const text = (chars: number) => `${randomUUID()}${'😀'.repeat(chars - 36)}`
  const ofRecords = ['sdkInstanceId', 'clientRecordId', 'detectionType', 'runId', 'sessionId', 'eventId', 'agentId']
  for (const field of [...ofRecords, 'policyId']) {
    assert.equal((await submit(service, issueRecord({ [field]: text(LIMITS.textChars) }))).status, 202, field)
    assert.equal((await submit(service, issueRecord({ [field]: text(LIMITS.textChars + 1) }))).status, 400, field)
  }
  for (const field of ['clientRequestId', 'sessionId', 'agentId', 'policyId', 'toolName']) {
    assert.equal((await ask({ [field]: text(LIMITS.textChars) })).status, 201, field)
    assert.equal((await ask({ [field]: text(LIMITS.textChars + 1) })).status, 400, field)
  }
  const header = (chars: number) => ({ 'x-service-client-id': 'c'.repeat(chars) })
  assert.equal((await ask({}, header(LIMITS.textChars))).status, 201)
  assert.equal((await ask({}, header(LIMITS.textChars + 1))).status, 400)
})
