/** An import applies the limits of the API to lines, and accepts only complete requests within the size limit. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { readImport } from '../../../src/domain/data/import.ts'
import { MOST_IMPORTED_COUNT, MOST_IMPORTED_VERSIONS } from '../../../src/domain/data/imported-values.ts'
import { exported, filled, linesOf, ofType } from '../../setup/export-service.ts'
import { startService, type Service } from '../../setup/service.ts'
import { refusalOf } from '../web/contract.ts'

let service: Service
let workspaceId: string
let whole: string
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' })
  const source = { service, ...(await filled(service)) }
  workspaceId = source.workspaceId
  whole = await exported(source)
})
after(() => service.close())

test('each kind of line has the limits of the API that takes the same values', () => {
  const faultOf = (line: object, before: string[] = []) => {
    const read = readImport([linesOf(whole)[0] ?? '', ...before, JSON.stringify(line)], workspaceId)
    return 'line' in read ? read.message : null
  }
  const first = (type: string) => ofType(whole, type)[0] ?? assert.fail(`no ${type}`)
  const chars: [type: string, member: string, most: number][] = [
    ['prompt', 'name', LIMITS.nameChars],
    ['promptVersion', 'note', LIMITS.noteChars],
    ['promptVersion', 'author', LIMITS.textChars],
    ['policy', 'id', LIMITS.policyIdChars],
    ['policyVersion', 'policyId', LIMITS.policyIdChars],
    ['policyVersion', 'name', LIMITS.nameChars],
    ['policyVersion', 'description', LIMITS.descriptionChars],
    ['deployment', 'itemId', LIMITS.policyIdChars],
    ['deployment', 'deployedBy', LIMITS.textChars],
    ['deploymentChange', 'note', LIMITS.noteChars],
    ['runView', 'name', LIMITS.runViewNameChars],
    ['agent', 'displayName', LIMITS.nameChars],
    ['agent', 'externalId', LIMITS.textChars],
    ['agent', 'name', LIMITS.textChars],
    ['model', 'model', LIMITS.modelChars],
    ['run', 'runId', LIMITS.runIdChars],
    ['run', 'sessionId', LIMITS.textChars],
    ['event', 'eventId', LIMITS.eventIdChars],
    ['event', 'clientId', LIMITS.clientIdChars],
    ['event', 'label', LIMITS.labelChars],
    ['event', 'agentName', LIMITS.textChars],
    ['event', 'spanId', LIMITS.textChars],
    ['approval', 'clientId', LIMITS.textChars],
    ['approval', 'runId', LIMITS.runIdChars],
    ['approval', 'inputHash', LIMITS.inputHashDigitsMax],
    ['approval', 'reason', LIMITS.approvalBodyBytes],
    ['approval', 'decisionReason', LIMITS.decisionReasonChars],
    ['approval', 'deciderName', LIMITS.textChars],
    ['approval', 'toolCallId', LIMITS.textChars],
    ['approval', 'policyVersion', LIMITS.textChars],
    ['approval', 'hashScheme', LIMITS.textChars],
    ['approval', 'inputEventId', LIMITS.textChars],
    ['issueRecord', 'clientRecordId', LIMITS.textChars],
    ['issueRecord', 'runId', LIMITS.textChars],
    ['issue', 'title', LIMITS.textChars],
    ['issue', 'assignee', LIMITS.assigneeChars],
    ['issueFingerprint', 'fingerprint', LIMITS.fingerprintChars],
    ['issueAffected', 'subject', LIMITS.textChars],
    ['issueActivity', 'text', LIMITS.commentChars],
    ['score', 'comment', LIMITS.scoreCommentChars],
    ['score', 'authorName', LIMITS.textChars],
  ]
  for (const [type, member, most] of chars) {
    const line = type === 'agent' ? { ...first(type), externalId: 'a-1' } : first(type)
    const [run] = type === 'event' ? [JSON.stringify(first('run'))] : []
    const before = run === undefined ? [] : [run]
    assert.equal(faultOf({ ...line, [member]: 'a'.repeat(most) }, before), null, `${type} ${member}`)
    const fault = faultOf({ ...line, [member]: 'a'.repeat(most + 1) }, before) ?? ''
    assert.match(
      fault,
      new RegExp(`${member}\\b.* ${most}( |$)|${member}\\b.* form|${member}: it does not match`),
      `${type} ${member}`,
    )
    assert.match(faultOf({ ...line, [member]: '\ud800' }, before) ?? '', new RegExp(member), `${type} ${member}`)
  }
  const numbers: [type: string, member: string, least: number, most: number][] = [
    ['prompt', 'newest', 1, MOST_IMPORTED_VERSIONS],
    ['policyVersion', 'number', 1, MOST_IMPORTED_VERSIONS],
    ['deployment', 'publication', 1, MOST_IMPORTED_VERSIONS],
    ['runView', 'lastHours', 1, LIMITS.runViewHours],
    ['agent', 'archivedAt', 0, LIMITS.detectedAtMaxMs],
    ['run', 'totalTokens', 0, Number.MAX_SAFE_INTEGER],
    ['run', 'startedAt', 0, LIMITS.detectedAtMaxMs],
    ['approval', 'timeoutMs', LIMITS.approvalTimeoutMsMin, LIMITS.approvalTimeoutMsMax],
    ['approval', 'recordsInput', 0, 1],
    ['approval', 'withdrawnAt', 0, LIMITS.detectedAtMaxMs],
    ['approval', 'ranAt', 0, LIMITS.detectedAtMaxMs],
    ['issueRecord', 'detectedAt', 0, LIMITS.detectedAtMaxMs],
    ['issue', 'occurrences', 0, MOST_IMPORTED_COUNT],
    ['issueFingerprint', 'lastSeen', 0, LIMITS.detectedAtMaxMs],
    ['issueAffected', 'occurrences', 0, MOST_IMPORTED_COUNT],
    ['issueActivity', 'at', 0, LIMITS.detectedAtMaxMs],
    ['score', 'scoredAt', 0, LIMITS.detectedAtMaxMs],
  ]
  for (const [type, member, least, most] of numbers) {
    const line = first(type)
    for (const value of [least, most]) assert.equal(faultOf({ ...line, [member]: value }), null, `${type} ${member}`)
    for (const value of [least - 1, most + 1, least + 0.5]) {
      assert.match(faultOf({ ...line, [member]: value }) ?? '', new RegExp(`invalid ${member}`), `${type} ${member}`)
    }
  }
  const refused: [type: string, change: object, reason: RegExp][] = [
    ['agent', { externalId: null, displayName: 'Refunds' }, /has a displayName, but no externalId/],
    ['agent', { id: 'not a uuid' }, /invalid id: it must be a UUID/],
    ['promptVersion', { content: '' }, /invalid content: it must not be empty/],
    ['promptVersion', { content: 'changed' }, /invalid contentHash: it is not that of its content/],
    ['promptVersion', { contentBytes: 1 + LIMITS.promptContentBytes }, /invalid contentBytes/],
    ['policyVersion', { condition: 'tool.name ==' }, /invalid condition/],
    ['runView', { query: { status: 'CLOSED' } }, /invalid query.status/],
    ['runView', { columns: ['none'] }, /invalid columns/],
    ['issue', { stateBy: { kind: 'robot' } }, /invalid stateBy/],
    ['issueFingerprint', { facts: { tools: 'one' } }, /invalid facts.tools/],
    ['issueActivity', { kind: 'REMOVED' }, /invalid kind/],
    ['issueActivity', { detail: null }, /invalid detail/],
    ['score', { name: 'a<b' }, /invalid name/],
    ['score', { eventId: 'another' }, /invalid id: it is not that of its run, step, name and author/],
    ['score', { kind: 'CATEGORY', number: 1, category: null }, /has no value of the kind CATEGORY/],
    ['score', { kind: 'BOOLEAN', number: 0.5, category: null }, /has no value of the kind BOOLEAN/],
    ['score', { kind: 'NUMBER', number: 1e308, category: null }, /invalid number/],
    ['score', { kind: 'MANY' }, /invalid kind/],
    ['issueRecord', { payload: [] }, /invalid payload/],
    ['issueRecord', { evidence: null }, /invalid evidence/],
    ['run', { traits: `\n${'tool:"t"\n'.repeat(600)}`, payloadsRemoved: 1 }, /invalid traits/],
  ]
  for (const [type, change, reason] of refused) assert.match(faultOf({ ...first(type), ...change }) ?? '', reason)
})

test('an import brings only what events could have left of a recording: else a list of runs fails, or a run looks complete', () => {
  const run = ofType(whole, 'run')[0] ?? assert.fail('no run')
  const faultOf = (recorders: unknown, eventCount: number): string | null => {
    const line = {
      ...run,
      eventCount,
      recorders: typeof recorders === 'string' ? recorders : JSON.stringify(recorders),
    }
    const read = readImport([linesOf(whole)[0] ?? '', JSON.stringify(line)], workspaceId)
    return 'line' in read ? read.message : null
  }
  const row = ['abcde', 'client', 5, 3, 1, 1, 'queue_full', 1, 1_790_000_000_000]
  const changed = (at: number, value: unknown): unknown[] => row.map((one, index) => (index === at ? value : one))
  assert.equal(faultOf([row], 3), null)
  assert.equal(faultOf([row, changed(0, 'other')], 6), null)
  const wrong: Record<string, unknown> = {
    'a time that is no date': [changed(8, 9_000_000_000_000_000)],
    'a negative count': [changed(7, -1)],
    'a huge count': [changed(7, 2 ** 53 - 1)],
    'a fraction': [changed(3, 0.5)],
    'a huge number': [changed(2, 2 ** 53 - 1)],
    'a text for a number': [changed(2, '5')],
    'half done': [changed(5, 2)],
    'an id of any event': [changed(0, '')],
    'a long id': [changed(0, 'abcdef')],
    'a reason that is no word': [changed(6, 'A')],
    'no client': [changed(1, '')],
    'one recorder twice': [row, row],
    'too many recorders': Array.from({ length: 51 }, (_, n) => ['abcde', 'c', n, 0, 0, 0]),
    'too many reasons': [
      [...row.slice(0, 6), ...Array.from({ length: 9 }, (_, n) => ['r'.repeat(n + 1), 1, 1]).flat()],
    ],
    'another form': '[["abcde", "client", 5, 3, 1, 1]]',
    'no recorder': [],
    'no list': {},
    'no JSON': '[[',
  }
  for (const [name, recorders] of Object.entries(wrong)) {
    assert.equal(faultOf(recorders, 100), 'has invalid recorders', name)
  }
  assert.equal(faultOf([row], 2), 'has invalid recorders', 'more arrived than the run has')
})

test('an import that is damaged on the wire is refused, and writes nothing', async () => {
  const { environmentId } = await service.newTenant('damaged')
  const path = `${service.url}/operator/v1/environments/${environmentId}/import`
  const text = JSON.stringify({ lines: linesOf(whole).slice(0, 500) })
  const headers = { authorization: `Bearer ${service.operatorToken}`, 'content-type': 'application/json' }
  const packed = gzipSync(text)
  const garbage = Buffer.from(packed)
  garbage.fill(0xff, packed.length >> 1)
  const bodies: [Buffer, string, number, string][] = [
    [garbage, 'gzip', 400, 'invalid_encoding'],
    [packed.subarray(0, packed.length - 20), 'gzip', 400, 'invalid_encoding'],
    [Buffer.from(text), 'gzip', 400, 'invalid_encoding'],
    [Buffer.from(text.slice(0, text.length >> 1)), 'identity', 400, 'invalid_json'],
    [gzipSync(Buffer.alloc(LIMITS.importBodyBytes + 1, ' ')), 'gzip', 413, 'body_too_large'],
    [zstdCompressSync(Buffer.alloc(20 * LIMITS.importBodyBytes)), 'zstd', 413, 'body_too_large'],
    [Buffer.from(text), 'constructor', 415, 'unsupported_media_type'],
    [
      Buffer.from(JSON.stringify({ lines: Array(LIMITS.importedLines + 1).fill('{}') })),
      'identity',
      400,
      'invalid_request',
    ],
  ]
  for (const [body, encoding, status, code] of bodies) {
    const sent = { method: 'POST', headers: { ...headers, 'content-encoding': encoding }, body: new Uint8Array(body) }
    const reply = await fetch(path, sent)
    assert.deepEqual([reply.status, ((await reply.json()) as { code: string }).code], [status, code], encoding)
  }
  // Close the connection in the middle of the body.
  const cut = request(path, { method: 'POST', headers: { ...headers, 'content-length': text.length } })
  cut.on('error', () => undefined)
  cut.write(text.slice(0, text.length >> 1))
  await once(cut, 'socket')
  cut.destroy()
  assert.doesNotMatch(await exported({ service, environmentId }), /"type":"(run|event|agent)"/)
})

test('lines with a million values, levels or names are read beside the requests of others', async () => {
  const { environmentId } = await service.newTenant('dense')
  const [head = ''] = linesOf(whole)
  for (const [line, refusal] of [
    [`{"type":"run","x":[${'{},'.repeat(1_000_000)}{}]}`, /^lines\[1\] has no /],
    [`{"type":"run","x":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`, /^lines\[1\] /],
    [`{"type":"run",${Array.from({ length: 250_000 }, (_, n) => `"n${n}":0`).join()}}`, /^lines\[1\] has no /],
  ] as const) {
    const body = gzipSync(JSON.stringify({ lines: [head, line] }))
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' }
    let isOver = false
    const sent = service
      .operator(`/environments/${environmentId}/import`, { body, headers })
      .finally(() => (isOver = true))
    let answeredMeanwhile = 0
    while (!isOver) {
      await service.call('/healthz')
      if (!isOver) answeredMeanwhile++
    }
    const answer = await sent
    assert.deepEqual(refusalOf(answer), [400, 'invalid_request'])
    assert.match((answer.body as { detail: string }).detail, refusal)
    // If the main thread parsed the line, no request would be answered meanwhile.
    assert.ok(answeredMeanwhile >= 5, `${answeredMeanwhile}`)
  }
})

test('a body of operators has at most 50,000 values and names', async () => {
  const { environmentId } = await service.newTenant('values')
  const send = (count: number) =>
    service.operator(`/environments/${environmentId}/import`, { body: `{"lines":[${'0,'.repeat(count - 4)}0]}` })
  assert.deepEqual(refusalOf(await send(LIMITS.bodyValues)), [400, 'invalid_request'])
  const refused = await send(LIMITS.bodyValues + 1)
  assert.deepEqual(refusalOf(refused), [413, 'body_too_large'])
  assert.match((refused.body as { detail: string }).detail, /at most 50000 values and names/)
})
