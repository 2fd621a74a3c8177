import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { randomUUID } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { IssueRecordDetail } from '@tacho/contract/issues/operator-issue-record.ts'
import { issueRecord, reviewed, submit } from '../../setup/issue-service.ts'
import { startService, type Answer, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'
import { RECORD_KINDS } from '@tacho/contract/engine/words.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const read = async (id: string): Promise<Answer<IssueRecordDetail>> =>
  service.operator(`/environments/${service.environmentId}/issue-records/${id}`)

/** The pointer to the field for which a record was rejected. */
async function faultOf(record: unknown): Promise<string | undefined> {
  const answer = await submit(service, record)
  assert.equal(answer.status, 400, `${JSON.stringify(record).slice(0, 200)} -> ${answer.text}`)
  const { code, errors } = answer.body as unknown as { code: string; errors: { path: string; message: string }[] }
  assert.equal(code, 'invalid_request')
  return errors[0] && (errors[0].path || errors[0].message)
}

test('a record is stored, answered 202 RECEIVED, and decided in the background', async () => {
  const { status, body } = await submit(service, issueRecord())
  assert.equal(status, 202)
  assert.deepEqual(Object.keys(body), ['recordId', 'status', 'isNew'])
  assert.deepEqual([body.status, body.isNew], ['RECEIVED', true])
  assert.match(body.recordId, /^[0-9a-f-]{36}$/)
  await reviewed(service)
  assert.equal((await read(body.recordId)).body.status, 'DECIDED')
})

test('the same sdkInstanceId and clientRecordId get the first record and its current status, isNew false', async () => {
  const record = issueRecord({ payload: { n: 1 } })
  const first = (await submit(service, record)).body
  await reviewed(service)
  const again = await submit(service, { ...record, recordKind: 'RECOVERY', payload: { n: 2 } })
  assert.equal(again.status, 202)
  assert.deepEqual(again.body, { recordId: first.recordId, status: 'DECIDED', isNew: false })
  const { payload, recordKind } = (await read(first.recordId)).body
  assert.deepEqual([payload, recordKind], [{ n: 1 }, 'DETECTION'])
  const other = await submit(service, { ...record, sdkInstanceId: 'another' })
  assert.equal(other.body.isNew, true)
})

test('of concurrent retries, one is new and all return the same record', async () => {
  const record = issueRecord()
  const answers = await Promise.all(Array.from({ length: 25 }, () => submit(service, record)))
  assert.equal(answers.filter(({ body }) => body.isNew).length, 1)
  assert.equal(new Set(answers.map(({ body }) => body.recordId)).size, 1)
})

test("a record has all the interface's fields, unchanged", async () => {
  const promptVersionId = randomUUID()
  const detectedAt = Date.now() - 123_456
  const given = {
    sdkInstanceId: ' sdk ',
    clientRecordId: '💾 1',
    recordKind: 'RECOVERY',
    detectionType: 'LOOP_DETECTED',
    runId: 'run/1',
    sessionId: 's',
    eventId: 'e',
    agentId: 'a',
    policyId: 'p',
    promptVersionId: promptVersionId.toUpperCase(),
    detectedAt,
    evidence: { decision: 'BLOCK' },
    unknown: 'ignored',
  }
  const payload = '{ "b":1.0, "1":9007199254740993,"a":1,"a":2,"__proto__":{"x":"\\u0000\\ud800"} }'
  const text = JSON.stringify(given).replace(/\}$/, `,"payload":{"first":1},"p\\u0061yload" : ${payload}}`)
  const { status, body } = await submit(service, text)
  assert.equal(status, 202)
  const answer = await read(body.recordId)
  assert.ok(answer.text.includes(`"payload":${payload}`), answer.text)
  const { id, receivedAt, statusChangedAt, failure } = answer.body
  const of = ['id', 'receivedAt', 'status', 'statusChangedAt', 'failure', 'fingerprint', 'issueId', 'payload']
  assert.deepEqual(Object.fromEntries(Object.entries(answer.body).filter(([name]) => !of.includes(name))), {
    sdkInstanceId: ' sdk ',
    clientRecordId: '💾 1',
    recordKind: 'RECOVERY',
    detectionType: 'LOOP_DETECTED',
    runId: 'run/1',
    sessionId: 's',
    eventId: 'e',
    agentId: 'a',
    policyId: 'p',
    promptVersionId,
    detectedAt: new Date(detectedAt).toISOString(),
    internalRunId: null,
    internalEventId: null,
    origin: 'CLIENT',
    sameAs: null,
    evidence: { decision: 'BLOCK' },
  })
  assert.equal(id, body.recordId)
  assert.ok(receivedAt <= statusChangedAt && failure === null)
})

test('optional fields may be absent or null, which means the same', async () => {
  const optional = ['runId', 'sessionId', 'eventId', 'policyId', 'promptVersionId', 'payload', 'evidence']
  const nulls = Object.fromEntries(optional.map((name) => [name, null]))
  const ids = [await submit(service, issueRecord()), await submit(service, issueRecord(nulls))].map(
    ({ body }) => body.recordId,
  )
  await reviewed(service)
  const [absent, given] = await Promise.all(ids.map(async (id) => (await read(id)).body))
  assert.ok(absent && given)
  for (const name of optional) {
    const field = name as keyof IssueRecordDetail
    assert.deepEqual(given[field], absent[field], name)
    assert.deepEqual(given[field], name === 'payload' || name === 'evidence' ? {} : null, name)
  }
  assert.equal(given.fingerprint, absent.fingerprint)
})

test('required fields are required, ids are not empty, and each fault names its field', async () => {
  const ids = ['sdkInstanceId', 'clientRecordId', 'detectionType', 'agentId']
  for (const name of [...ids, 'recordKind', 'detectedAt']) {
    assert.match((await faultOf(issueRecord({ [name]: undefined }))) ?? '', new RegExp(name), name)
    assert.equal(await faultOf(issueRecord({ [name]: null })), `/${name}`)
  }
  for (const name of ids) {
    for (const value of ['', 7, {}, ['x'], true])
      assert.equal(await faultOf(issueRecord({ [name]: value })), `/${name}`)
    assert.equal((await submit(service, issueRecord({ [name]: 'x' }))).status, 202)
  }
  for (const name of ['runId', 'sessionId', 'eventId', 'policyId']) {
    for (const value of [7, {}, [], false]) assert.equal(await faultOf(issueRecord({ [name]: value })), `/${name}`)
    assert.equal((await submit(service, issueRecord({ [name]: '' }))).status, 202)
  }
  for (const name of ['payload', 'evidence']) {
    for (const value of [7, 'x', [], true]) assert.equal(await faultOf(issueRecord({ [name]: value })), `/${name}`)
  }
})

test('a text is well-formed and without NUL', async () => {
  for (const name of [
    'sdkInstanceId',
    'clientRecordId',
    'detectionType',
    'runId',
    'sessionId',
    'eventId',
    'agentId',
    'policyId',
  ]) {
    for (const value of ['a\0', '\ud800', 'x\udc00y'])
      assert.equal(await faultOf(issueRecord({ [name]: value })), `/${name}`)
  }
})

test('recordKind is DETECTION or RECOVERY, promptVersionId a UUID', async () => {
  for (const recordKind of RECORD_KINDS) assert.equal((await submit(service, issueRecord({ recordKind }))).status, 202)
  for (const recordKind of ['detection', 'OTHER', '']) {
    assert.equal(await faultOf(issueRecord({ recordKind })), '/recordKind')
  }
  for (const promptVersionId of ['', 'v1', `${randomUUID()}0`, randomUUID().replaceAll('-', '')]) {
    assert.equal(await faultOf(issueRecord({ promptVersionId })), '/promptVersionId')
  }
})

test('detectedAt is an integer from 1970 to the year 9999', async () => {
  for (const text of ['0', '-0', String(LIMITS.detectedAtMaxMs)]) {
    const record = JSON.stringify(issueRecord({ detectedAt: 1 })).replace('"detectedAt":1', `"detectedAt":${text}`)
    const { status, body } = await submit(service, record)
    assert.equal(status, 202)
    assert.equal((await read(body.recordId)).body.detectedAt, new Date(Number(text)).toISOString())
  }
  for (const detectedAt of [-1, LIMITS.detectedAtMaxMs + 1, 1.5, 1e308, '1', new Date().toISOString()]) {
    assert.equal(await faultOf(issueRecord({ detectedAt })), '/detectedAt')
  }
})

test('a body is at most 256 KiB, decoded', async () => {
  const filled = (bytes: number) => {
    const empty = JSON.stringify(issueRecord({ payload: { text: '' } }))
    return empty.replace('"text":""', `"text":"${'x'.repeat(bytes - empty.length)}"`)
  }
  const largest = filled(LIMITS.issueRecordBytes)
  assert.equal(Buffer.byteLength(largest), 262_144)
  assert.equal((await submit(service, largest)).status, 202)
  assert.deepEqual(refusalOf(await submit(service, filled(LIMITS.issueRecordBytes + 1))), [413, 'body_too_large'])
  const packed = (bytes: number) =>
    service.api('/issue-records', { body: gzipSync(filled(bytes)), headers: { 'content-encoding': 'gzip' } })
  assert.equal((await packed(LIMITS.issueRecordBytes)).status, 202)
  assert.deepEqual(refusalOf(await packed(LIMITS.issueRecordBytes + 1)), [413, 'body_too_large'])
})

test('payload and evidence are nested at most 200 levels deep', async () => {
  for (const name of ['payload', 'evidence']) {
    const nested = (levels: number) =>
      JSON.stringify(issueRecord({ [name]: {} })).replace(
        `"${name}":{}`,
        `"${name}":${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`,
      )
    assert.equal((await submit(service, nested(LIMITS.payloadDepthLevels))).status, 202)
    assert.equal(await faultOf(nested(LIMITS.payloadDepthLevels + 1)), `/${name}`)
    // The deepest nesting that the limit on values and names of a body allows.
    assert.equal(await faultOf(nested(20_000)), `/${name}`)
  }
})

test('anything but a record is rejected: 400, 415', async () => {
  for (const body of ['[]', 'null', '"x"', '7'])
    assert.deepEqual(refusalOf(await submit(service, body)), [400, 'invalid_request'])
  for (const body of ['', '{', 'x']) assert.deepEqual(refusalOf(await submit(service, body)), [400, 'invalid_json'])
  assert.deepEqual(refusalOf(await submit(service, Buffer.from([0x22, 0xff, 0x22]))), [400, 'invalid_utf8'])
  const plain = await service.api('/issue-records', { body: '{}', headers: { 'content-type': 'text/plain' } })
  assert.deepEqual(refusalOf(plain), [415, 'unsupported_media_type'])
})

test('it needs a key with events:write', async () => {
  const missing = await service.call('/openapi/v1/issue-records', { body: issueRecord() })
  assert.deepEqual(refusalOf(missing), [401, 'unauthenticated'])
  const key = await service.newKey({ scopes: ['usage:read', 'config:read', 'policies:read'] })
  assert.deepEqual(refusalOf(await submit(service, issueRecord(), key)), [403, 'forbidden'])
  const slow = await service.newKey({ scopes: ['events:write'], requestsPerSecond: 1 })
  const answers = await Promise.all([1, 2, 3, 4].map(() => submit(service, issueRecord(), slow)))
  const refused = answers.find(({ status }) => status === 429)
  assert.ok(refused?.headers.get('retry-after'))
})

test('the key selects the tenant: another tenant can use the same client id, and cannot read the record', async () => {
  const { environmentId } = await service.newTenant('other tenant')
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const record = issueRecord({ workspaceId: 'x', environmentId: service.environmentId })
  const own = (await submit(service, record)).body
  const other = (await submit(service, record, key)).body
  assert.deepEqual([own.isNew, other.isNew], [true, true])
  assert.deepEqual(refusalOf(await read(other.recordId)), [404, 'not_found'])
})

test('while the store accepts no writes, a record gets 503 with Retry-After', async () => {
  const full = await startService({ minFreeDisk: '1TiB' })
  try {
    const answer = await submit(full, issueRecord())
    assert.deepEqual(refusalOf(answer), [503, 'storage_full'])
    assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]/)
  } finally {
    await full.close()
  }
})

test('an event is shown by its internal id if run and event are recorded', async () => {
  const runId = `run ${randomUUID()}`
  const { body } = await submit(service, issueRecord({ runId, eventId: 'e1' }))
  const before = (await read(body.recordId)).body
  assert.deepEqual([before.eventId, before.internalRunId, before.internalEventId], ['e1', null, null])
  const event = {
    eventId: 'e1',
    clientId: 'c',
    runId,
    agentName: 'a',
    eventType: 'ERROR',
    label: 'l',
    timestamp: Date.now(),
  }
  await service.record([event])
  const run = (await service.api<{ id: string; events: { id: string }[] }>(`/runs/${encodeURIComponent(runId)}`)).body
  const record = (await read(body.recordId)).body
  assert.deepEqual([record.internalRunId, record.internalEventId], [run.id, run.events[0]?.id])
})
