/** Imports of exports: the same on each engine, and from one to the other. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { MOST_IMPORTED_COUNT, MOST_IMPORTED_VERSIONS, valueFault } from '../../../src/domain/data/imported-values.ts'
import { EXPORTED_TABLES, memberOf } from '../../../src/storage/data/exports.ts'
import type { ExportedTable } from '../../../src/storage/engine/tables.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import {
  exported,
  filled,
  linesOf,
  ofType,
  requestsOf,
  restore,
  send,
  typeOf,
  type Exported,
} from '../../setup/export-service.ts'
import { testDatabases, type TestDatabases } from '../../setup/postgres-server.ts'
import { readImport } from '../../../src/domain/data/import.ts'
import { event, startService } from '../../setup/service.ts'
import { workDone } from '../../setup/work-done.ts'
import { refusalOf } from '../web/contract.ts'

let databases: TestDatabases
let source: Exported & { workspaceId: string }
let whole: string
before(async () => {
  databases = await testDatabases()
  const service = await startService({ webhookNetworks: '127.0.0.0/8' })
  const tenant = await filled(service)
  source = { service, ...tenant }
  const exception = { type: 'TimeoutError', message: 'no answer after 5 s' }
  const call = { toolName: 'get_order', exception }
  const failed = [
    event({ runId: 'thrown', n: 'abcde2', eventType: 'TOOL_CALL', payload: call }),
    event({ runId: 'thrown', n: 'abcde3.', eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }),
  ]
  assert.equal((await service.record(failed, tenant.apiKey)).body.accepted, 2)
  await workDone(service, 'find_failures')
  whole = await exported(source)
})
after(async () => {
  try {
    await source.service.close()
  } finally {
    await databases.close()
  }
})

/** What people see of the environment, beyond the lines. */
async function views({ service, environmentId }: Exported): Promise<string[]> {
  const range = `from=${new Date(Date.now() - 86_400_000).toISOString()}&to=${new Date(Date.now() + 7_200_000).toISOString()}`
  const paths = [
    '/runs?blind=false',
    `/usage?${range}`,
    '/issues',
    '/approvals',
    '/deployments',
    '/deployments/changes',
    '/run-views',
    '/agents?archived=true',
    '/runs/judged/scores?blind=false',
    '/score-names',
    '/runs?score=accuracy<1&scoreOrder=lowest&blind=false',
  ]
  paths.push(`/completeness?${range}&by=client`, `/completeness?${range}&by=agent`, '/runs/thrown', '/issue-records')
  paths.push(`/usage/points?${range}&step=day&by=agent`, `/usage/points?${range}&step=day&by=model`)
  const answers = await Promise.all(paths.map((path) => service.operator(`/environments/${environmentId}${path}`)))
  return answers.map(({ status, text }, index) => {
    assert.equal(status, 200, `${paths[index]}: ${text}`)
    // An import marks the approvals.
    const same = text.replaceAll(/"importedAt":(null|"[^"]+")/g, '')
    return same.replaceAll(environmentId, '<environment>').replaceAll(/"nextCursor":"[^"]+"/g, '')
  })
}

test(
  'an export that is imported into an empty installation is exported again byte for byte, on and between both engines',
  { timeout: 600_000 },
  async () => {
    const expected = await views(source)
    // What the service found in the events: gaps, why a run failed, and the issue of it.
    const said = ['"state":"GAPS"', '"reason":"queue_full"', '"errorClass":"TimeoutError"', '"origin":"SERVICE"']
    for (const text of said) assert.ok(expected.join('').includes(text), text)
    assert.match(expected.join(''), /"TimeoutError in get_order: no answer after …"/)
    let text = whole
    // From the embedded engine into itself: the import that is repeated, below.
    for (const engine of ['postgres', 'postgres', 'sqlite']) {
      const database = engine === 'postgres' ? await databases.create() : null
      const service = await startService(database ? { databaseUrl: database.url } : {})
      try {
        const target = { service, ...(await service.newTenant('acme')) }
        await restore(target, requestsOf(text))
        text = await exported(target)
        assert.equal(text === whole, true, `${engine}: ${firstDifference(text, whole)}`)
        assert.deepEqual(await views(target), expected)
      } finally {
        await service.close()
        await database?.drop()
      }
    }
  },
)

test('the export above has every column of a request for approval, and an import takes any number of any table', () => {
  const sent = new Set(ofType(whole, 'approval').flatMap((line) => Object.keys(line)))
  const { columns } = EXPORTED_TABLES.approval
  assert.deepEqual(
    columns.map(memberOf).filter((member) => !sent.has(member)),
    [],
  )
  for (const [table, { columns, numbers }] of Object.entries(EXPORTED_TABLES)) {
    // A schema of the API may have another type than the column.
    for (const column of columns) {
      const faultOf = (value: unknown) => valueFault(table as ExportedTable, memberOf(column), value)
      if (numbers.includes(column)) assert.ok(faultOf(1) === null || faultOf(LIMITS.approvalTimeoutMsMin) === null)
      else assert.doesNotMatch(faultOf('x') ?? '', /must be (true or false|a (whole )?number)/)
    }
  }
})

function firstDifference(one: string, other: string): string {
  const [left, right] = [one.split('\n'), other.split('\n')]
  const at = left.findIndex((line, index) => line !== right[index])
  return `${left[at]?.slice(0, 500)}\n${right[at]?.slice(0, 500)}`
}

test('an import can be repeated; it refuses an environment that has other rows', async () => {
  const service = await startService()
  const target = { service, ...(await service.newTenant('acme')) }
  const requests = requestsOf(whole)
  const { written, known } = await restore(target, requests.slice(0, 2))
  assert.ok(written > 0)
  // Those that clients sent are there with their events.
  const isSent = (line: string) => line.startsWith('{"type":"score"') && line.includes('"sentAs"')
  assert.equal(known, requests.slice(0, 2).flat().filter(isSent).length)
  assert.deepEqual(refusalOf(await send(target, requests[0] ?? [])), [409, 'conflict'])
  await restore(target, requests, true)
  assert.equal((await restore(target, requests, true)).written, 0)
  assert.equal((await exported(target)) === whole, true)

  const events = linesOf(whole).filter((line) => typeOf(line) === 'run' || typeOf(line) === 'event')
  const [run = '', one = ''] = events
  const [head = ''] = linesOf(whole)
  const changed = one.replace(/"label":"[^"]*"/, '"label":"changed"')
  const refused = async (lines: string[], reason: RegExp) => {
    const { status, text } = await send(target, [head, ...lines], true)
    assert.ok(status === 409 || status === 400, text)
    // Numbers in the reasons are without the first line.
    assert.match(
      text.replace(/lines\[(\d+)\]/, (_, at: string) => `lines[${Number(at) - 1}]`),
      reason,
    )
  }
  await refused([run, changed], /lines\[0\]: event .* is stored with other content/)
  await refused([run.replace(/"id":"./, '"id":"f'), one], /another run has its id/)
  await refused([one], /without the line of its run/)
  await refused([run, one.replace('"eventId":"', '"eventId":7,"was":"')], /lines\[1\] is not a valid event/)
  assert.match((await send(target, ['{"type":"export","version":2}'], true)).text, /lines\[0\] has another version/)
  await refused(['{"type":"runs"}'], /unknown type/)
  await refused(['{"type":'], /not a line of an export/)
  const agent = linesOf(whole).find((line) => typeOf(line) === 'agent') ?? ''
  await refused([agent.replace(/"name":"[^"]*"/, '"name":"changed"')], /another agent is stored/)
  const [place] = one.match(/"payload.*$/) ?? ['']
  const payload = (text: string) => one.replace(place, text)
  await refused([run, payload('"payloadText":"{"}')], /lines\[1\] has an invalid payload/)
  await refused([run, payload('"payloadText":"[]"}')], /lines\[1\]/)
  await refused(
    [run, payload(`"payloadText":${JSON.stringify(`${'['.repeat(90_000)}${']'.repeat(90_000)}`)}}`)],
    /lines\[1\]/,
  )
  await refused([run, one.replace(/"receivedAt":\d+/, '"receivedAt":1e20')], /lines\[1\]/)
  await refused([run, one.replace(/"timestamp":\d+/, '"timestamp":-1')], /lines\[1\]/)
  await refused([run, one.replace(/"receivedAt":\d+/, '"receivedAt":-1')], /lines\[1\]/)
  await refused(['{"type":"constructor"}'], /unknown type/)
  await refused(['{"type":"__proto__","__proto__":{"type":"run"}}'], /unknown type/)
  const record = linesOf(whole).find((line) => typeOf(line) === 'issueRecord') ?? ''
  await refused([record.replace(/"payload(Text)?":.*$/, '"payloadText":"{","evidence":{}}')], /invalid payload/)
  await refused([record.replace(/"id":"[^"]*"/, '"id":"constructor"')], /invalid id|another issueRecord/)
  // What readers could not read.
  for (const [type, member] of [
    ['run', 'status'],
    ['approval', 'status'],
    ['issue', 'state'],
    ['issueRecord', 'recordKind'],
    ['deployment', 'kind'],
  ] as const) {
    const line = { ...ofType(whole, type)[0], [member]: 'constructor' }
    await refused([JSON.stringify(line)], new RegExp(`lines\\[0\\] has an invalid ${member}`))
  }
  // What no table can hold.
  const { createdAt, ...request } = ofType(whole, 'approval')[0] ?? assert.fail('no approval')
  for (const missing of [{}, { createdAt: null }]) {
    await refused([JSON.stringify({ ...request, ...missing })], /lines\[0\] has no createdAt/)
  }
  await refused([JSON.stringify({ ...request, createdAt: 'now' })], /lines\[0\] has an invalid createdAt/)
  await refused([JSON.stringify({ ...request, createdAt, toolName: 7 })], /lines\[0\] has an invalid toolName/)
  await refused(['{"type":"prompt"}'], /lines\[0\] has no id/)
  const bare = { ...(JSON.parse(run) as object), payloadsRemoved: 1 }
  for (const traits of ['tool:{', 'tool:7', 7]) {
    await refused([JSON.stringify({ ...bare, traits })], /lines\[0\] has invalid traits/)
  }
  for (const uncosted of ['{', '7', '[7]', '[["m","x"]]', '[["m",-1]]', '[["m",0,0,0,0,0,0,0,0,7]]', 7]) {
    await refused([JSON.stringify({ ...bare, uncosted })], /lines\[0\] has an invalid uncosted/)
  }
  for (const failure of ['{', '7', '["e"]', '["e",1,2,null,"tool",null]', '["e",1,1,null,"moon",null]', 7]) {
    await refused([JSON.stringify({ ...bare, failure })], /lines\[0\] has an invalid failure/)
  }
  // Nothing of the refused lines was written.
  assert.equal((await exported(target)) === whole, true)
  await service.close()
})

test('each kind of line has the limits of the API that takes the same values', () => {
  const faultOf = (line: object, before: string[] = []) => {
    const read = readImport([linesOf(whole)[0] ?? '', ...before, JSON.stringify(line)], source.workspaceId)
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
    const read = readImport([linesOf(whole)[0] ?? '', JSON.stringify(line)], source.workspaceId)
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

test('an import neither reads nor changes a prompt of another workspace', async () => {
  const { service } = source
  const target = { service, ...(await service.newTenant('another')) }
  const { promptId } = ofType(whole, 'promptVersion')[0] ?? assert.fail('no prompt')
  const versions = ofType(whole, 'promptVersion').filter((version) => version['promptId'] === promptId)
  const rows = [
    { ...versions[0], type: 'promptVersion', number: 99, id: '00000000-0000-4000-8000-000000000099' },
    { ...ofType(whole, 'deployment').find(({ kind }) => kind === 'prompt') },
    { ...ofType(whole, 'deploymentChange').find(({ kind }) => kind === 'prompt') },
  ]
  const [head = ''] = linesOf(whole)
  assert.equal((await send(target, [head])).status, 200)
  for (const row of rows) {
    const { status, text } = await send(target, [head, JSON.stringify(row)], true)
    assert.equal(status, 409, text)
    assert.match(text, /lines\[1\]: the workspace does not have its prompt or policy/)
  }
  const deployed = await service.operator<{ items: object[] }>(`/environments/${target.environmentId}/deployments`)
  assert.deepEqual(deployed.body.items, [])
  const listed = `/workspaces/${source.workspaceId}/prompts/${String(promptId)}/versions`
  assert.equal((await service.operator<{ items: object[] }>(listed)).body.items.length, versions.length)
})

test('an import that is damaged on the wire is refused, and writes nothing', async () => {
  const { service } = source
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
  // The connection ends in the middle of the body.
  const cut = request(path, { method: 'POST', headers: { ...headers, 'content-length': text.length } })
  cut.on('error', () => undefined)
  cut.write(text.slice(0, text.length >> 1))
  await once(cut, 'socket')
  cut.destroy()
  assert.doesNotMatch(await exported({ service, environmentId }), /"type":"(run|event|agent)"/)
})

const REAL_RUNS = fileURLToPath(new URL('../../../../../../shared/data/tau-airline/runs.jsonl', import.meta.url))

test(
  '150 real runs are imported into an empty installation and exported again byte for byte',
  { skip: existsSync(REAL_RUNS) ? false : 'there are no real runs here', timeout: 900_000 },
  async () => {
    const { service } = source
    const real = { service, ...(await service.newTenant('real')) }
    const key = await service.newKey({ scopes: ['events:write'], environmentId: real.environmentId })
    const kinds = new Map([
      ['assistant', 'LLM_CALL'],
      ['tool', 'TOOL_CALL'],
      ['user', 'USER_INPUT'],
    ])
    const base = Date.now() - 3_600_000
    let events: object[] = []
    for (const [index, line] of readFileSync(REAL_RUNS, 'utf8').trim().split('\n').entries()) {
      const { messages, reward } = JSON.parse(line) as { messages: { role: string }[]; reward: number }
      const runId = `conversation ${index}`
      const steps = messages.map((message, at) => {
        const usage = message.role === 'assistant' ? { usage: { promptTokens: at, completionTokens: 7 } } : {}
        return event({
          runId,
          timestamp: base + at,
          eventType: kinds.get(message.role) ?? 'AGENT_STEP',
          payload: { ...message, ...usage },
        })
      })
      const status = reward === 1 ? 'COMPLETED' : 'FAILED'
      steps.push(event({ runId, timestamp: base + steps.length, eventType: 'SESSION_OUTCOME', payload: { status } }))
      events.push(...steps)
    }
    for (; events.length > 0; events = events.slice(100)) {
      const { body } = await service.record(events.slice(0, 100), key)
      assert.equal(body.success, true)
    }
    const text = await exported(real)
    assert.equal(ofType(text, 'run').length, 150)
    const database = await databases.create()
    const empty = await startService({ databaseUrl: database.url })
    try {
      const target = { service: empty, ...(await empty.newTenant('real')) }
      await restore(target, requestsOf(text, LIMITS.importedLines))
      const again = await exported(target)
      assert.equal(again === text, true, firstDifference(again, text))
    } finally {
      await empty.close()
      await database.drop()
    }
  },
)

test('lines with a million values, levels or names are read beside the requests of others', async () => {
  const { service } = source
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
    // If the thread of the requests read the line, none would be answered before it is done.
    assert.ok(answeredMeanwhile >= 5, `${answeredMeanwhile}`)
  }
})

test('a body of operators has at most 50,000 values and names', async () => {
  const { service } = source
  const { environmentId } = await service.newTenant('values')
  const send = (count: number) =>
    service.operator(`/environments/${environmentId}/import`, { body: `{"lines":[${'0,'.repeat(count - 4)}0]}` })
  assert.deepEqual(refusalOf(await send(LIMITS.bodyValues)), [400, 'invalid_request'])
  const refused = await send(LIMITS.bodyValues + 1)
  assert.deepEqual(refusalOf(refused), [413, 'body_too_large'])
  assert.match((refused.body as { detail: string }).detail, /at most 50000 values and names/)
})
