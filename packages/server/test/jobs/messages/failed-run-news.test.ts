/** Webhooks get one message about a run that fails, with the reason and the address of the run. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { FailedRunMessage } from '@tacho/contract/messages/webhook-message.ts'
import { SCOPES } from '@tacho/contract/web/route.ts'
import { Value } from 'typebox/value'
import { eventually } from '../../setup/eventually.ts'
import { event, startService, type Service } from '../../setup/service.ts'
import { workDone } from '../../setup/work-done.ts'
import { replyOf, UNKNOWN_ID } from '../../http/web/contract.ts'

let service: Service
let hook: Server
const received: Record<string, { type: string; data: Record<string, unknown> }[]> = { standard: [], slack: [] }
/** The clock of the server is this much ahead. */
let ahead = 0
before(async () => {
  hook = createServer((request, response) => {
    void json(request).then((message) => {
      received[request.url?.slice(1) ?? '']?.push(message as (typeof received)[string][number])
      response.end()
    })
  })
  await once(hook.listen(0, '127.0.0.1'), 'listening')
  const settings = { webhookNetworks: '127.0.0.0/8', publicUrl: 'https://tacho.example/at' }
  service = await startService(settings, () => Date.now() + ahead)
  const url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}`
  for (const format of ['standard', 'slack']) {
    const body = { url: `${url}/${format}`, format, events: ['run.failed', 'alert.firing'] }
    assert.equal((await service.operator(at('webhooks'), { body })).status, 201)
  }
})
after(async () => {
  await service.close()
  hook.close()
})

async function record(events: object[], key?: string): Promise<void> {
  const { status, body, text } = await service.record(events, key)
  assert.ok(status === 200 && body.success, text)
}

const at = (place: string) => `/environments/${service.environmentId}/${place}`
const ended = (runId: string, payload: object, change: object = {}) =>
  event({ runId, eventType: 'SESSION_OUTCOME', payload, ...change })

async function toldOf(runId: string) {
  await workDone(service, 'find_failures', 'deliver_webhook')
  return (received['standard'] ?? []).filter(({ data }) => data['runId'] === runId)
}

test('a run that fails is told once, with its error, its agent and its page; one that does not is not', async () => {
  const exception = { type: 'TimeoutError', message: 'no answer after 3000 ms\nsecond line' }
  await record([
    event({ runId: 'failed', eventType: 'TOOL_CALL', payload: { toolName: 'get_order', exception } }),
    ended('failed', { status: 'FAILED' }, { agentId: 'shop', agentName: 'Shop' }),
    event({ runId: 'recovered', eventType: 'TOOL_CALL', payload: { toolName: 'get_order', exception } }),
    ended('recovered', { status: 'COMPLETED' }),
  ])
  const [message, ...more] = await toldOf('failed')
  assert.deepEqual(more, [])
  Value.Assert(FailedRunMessage, message)
  const { data } = message
  assert.equal(data.title, 'TimeoutError in get_order: no answer after 3000 ms')
  const { eventId: _, ...failure } = data.failure ?? { eventId: '' }
  const place = { place: 'tool', name: 'get_order' }
  assert.deepEqual(failure, { errorClass: 'TimeoutError', message: 'no answer after 3000 ms', ...place })
  const { items } = replyOf('listWorkspaces', await service.operator('/workspaces'))
  const page = `https://tacho.example/at/w/${items[0]?.id}/${service.environmentId}/runs/${data.id}`
  assert.deepEqual([data.url, data.runStatus, data.runId], [page, 'FAILED', 'failed'])
  assert.equal((await service.operator(at(`runs/${data.id}`))).status, 200)

  // Errors and outcomes that arrive after the run's end, in the same batch and later.
  const later = Date.now() + 5
  await record([
    event({ runId: 'failed', eventType: 'ERROR', payload: { message: 'late' } }),
    ended('failed', { status: 'FAILED', error: 'again' }, { timestamp: later }),
  ])
  await record([event({ runId: 'failed', eventType: 'ERROR', payload: {}, timestamp: later })])
  assert.equal((await toldOf('failed')).length, 1)
  assert.deepEqual(await toldOf('recovered'), [])
  const slack = JSON.stringify(received['slack'])
  assert.match(slack, /A run failed: TimeoutError in get_order: no answer after 3000 ms/)
  assert.ok(slack.includes(`<${page}|Open in the console>`), slack)
  assert.equal(received['slack']?.length, 1)
})

test('a message is short, whatever the error and the ids are', async () => {
  const message = `${'x'.repeat(100_000)}\nnot this`
  await record([
    ended(
      '__proto__',
      { status: 'FAILED', exception: { type: 'constructor', message, stack: message } },
      { agentId: 'constructor', agentName: '__proto__' },
    ),
    ended('bare', { status: 'FAILED' }),
  ])
  const [long] = await toldOf('__proto__')
  assert.deepEqual([long?.data['agentId'], long?.data['agentName']], ['constructor', '__proto__'])
  assert.ok(JSON.stringify(long).length < 3_000, String(JSON.stringify(long).length))
  const [bare] = await toldOf('bare')
  assert.deepEqual([bare?.data['title'], bare?.data['failure']], ['It says FAILED and no error', null])
})

test('a message about an alert of one agent names it as operators see it', async () => {
  await record([event({ runId: 'named', agentId: 'named', agentName: 'Named' })])
  const run = replyOf('readOperatorRun', await service.operator(at('runs/named')))
  const rename = { body: { name: 'Called so' } }
  assert.equal((await service.operator(at(`agents/${run.agent.id}/rename`), rename)).status, 200)
  for (const agentId of [run.agent.id, null, UNKNOWN_ID]) {
    const body = { name: `of ${agentId}`, kind: 'no_runs', threshold: 0, ...(agentId && { agentId }) }
    const { id } = replyOf('createAlert', await service.operator(at('alerts'), { body }))
    await service.operator(at(`alerts/${id}/test`), { method: 'POST' })
  }
  const told = await eventually(() => {
    const tests = (received['standard'] ?? []).filter(({ data }) => data['isTest'])
    const isInSlack = JSON.stringify(received['slack']).includes(`Called so (${run.agent.id})`)
    return tests.length === 3 && isInSlack ? tests : null
  }, 'three messages, and the name in Slack')
  const names = Object.fromEntries(told.map(({ data }) => [String(data['agentId']), data['agentName']]))
  assert.deepEqual(names, { [run.agent.id]: 'Called so', null: null, [UNKNOWN_ID]: null })
})

test('a webhook hears of runs of its own environment only', async () => {
  const { environmentId } = await service.newTenant('another')
  const key = await service.newKey({ scopes: [...SCOPES], environmentId })
  await record([ended('foreign', { status: 'FAILED', error: 'x' })], key)
  assert.deepEqual(await toldOf('foreign'), [])
})

test('a run that went silent is told when the stalled rule closes it', async () => {
  await record([
    event({ runId: 'silent', eventType: 'TOOL_CALL', payload: { toolName: 'refund', error: 'Error: earlier' } }),
  ])
  assert.deepEqual(await toldOf('silent'), [])
  ahead = 2 * 3_600_000
  await eventually(async () => (await toldOf('silent')).length > 0, 'the message')
  const [message, ...more] = await toldOf('silent')
  assert.deepEqual(more, [])
  assert.deepEqual([message?.data['title'], message?.data['failure']], ['its process went silent', null])
})
