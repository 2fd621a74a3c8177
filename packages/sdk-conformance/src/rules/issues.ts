/** Issue records: their idempotency key. */
import assert from 'node:assert/strict'
import { RELEASE, type Rule } from '../rule.ts'
import { hangUp, json, refuse } from '../scripted-service.ts'

const RECEIVED = json(202, { recordId: '01900000-0000-7000-8000-0000000000dd', status: 'RECEIVED', isNew: true })
const detection = { detectionType: 'TOOL_FAILED', payload: { toolName: 'transfer' } }

export const issueRules: Rule[] = [
  {
    id: 'issues/same-record',
    title: 'A record has the same clientRecordId in every attempt, and the client id of the events',
    async run(subject) {
      const { service, clientId } = subject
      service.script('issue-records', refuse(500), hangUp, RECEIVED)
      await subject.report(detection)
      const requests = await service.until('issue-records', 3)
      assert.equal(new Set(requests.map(({ text }) => text)).size, 1, 'the record changed between two attempts')
      const body = requests[0]?.json as Record<string, unknown>
      assert.equal(body['sdkInstanceId'], clientId)
      assert.deepEqual(body['payload'], { toolName: 'transfer', release: RELEASE })
      assert.equal(body['recordKind'], 'DETECTION')
      assert.ok(Number.isInteger(body['detectedAt']))
      assert.ok(typeof body['agentId'] === 'string' && body['agentId'] !== '')
    },
  },
  {
    id: 'issues/own-record',
    title: 'A recovery has its own clientRecordId',
    async run(subject) {
      const { service } = subject
      await subject.report(detection)
      await subject.report({ ...detection, recordKind: 'RECOVERY' })
      const [first, second] = (await service.until('issue-records', 2)).map(({ json: body }) => body)
      const keyOf = (body: unknown) => (body as Record<string, unknown>)['clientRecordId']
      assert.notEqual(keyOf(first), keyOf(second))
      assert.equal((second as Record<string, unknown>)['recordKind'], 'RECOVERY')
    },
  },
  {
    id: 'issues/retry-after',
    title: 'Retry-After is respected for records too',
    async run(subject) {
      const { service } = subject
      service.script('issue-records', refuse(429, { 'retry-after': '2' }), RECEIVED)
      await subject.report(detection)
      const [first, second] = await service.until('issue-records', 2)
      const waited = (second?.at ?? 0) - (first?.at ?? 0)
      assert.ok(waited >= 1_990, `the next request came after ${Math.round(waited)} ms`)
    },
  },
]
