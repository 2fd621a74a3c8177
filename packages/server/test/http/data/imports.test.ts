/** Imports of exports: the same on each engine, from one to the other, and once more. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { valueFault } from '../../../src/domain/data/imported-values.ts'
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

/** Answers of the operator API about the environment, which depend on more than the exported lines. */
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
    // The service derives these from the events: gaps, the reason of a failure, and its issue.
    const said = ['"state":"GAPS"', '"reason":"queue_full"', '"errorClass":"TimeoutError"', '"origin":"SERVICE"']
    for (const text of said) assert.ok(expected.join('').includes(text), text)
    assert.match(expected.join(''), /"TimeoutError in get_order: no answer after …"/)
    let text = whole
    // The way from SQLite to SQLite is covered by the repeated import below.
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
  // Scores that clients sent are already known from their events.
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
    // Subtract the head line from the line numbers in the message.
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
  // Words that readers do not know.
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
  // Values that no table accepts.
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
