/** Stops, standing approvals and labels of tools, on the command line against a real server. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalGrant } from '@tacho/contract/approvals/grant.ts'
import type { Stop } from '@tacho/contract/policies/stop.ts'
import type { ToolLabels } from '@tacho/contract/policies/tool-labels.ts'
import { API_KEY, startServer } from './tacho.ts'

const server = await startServer()
after(() => server.stop())

async function send<Body>(route: string, body: object): Promise<Body> {
  const headers = { 'content-type': 'application/json', 'x-api-key': API_KEY, 'x-service-client-id': 'cli' }
  const reply = await fetch(`${server.url}/openapi/v1${route}`, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.ok(reply.ok, await reply.clone().text())
  return (await reply.json()) as Body
}

let count = 0
const ask = (fields: object = {}) =>
  send<Approval>('/firewall-approvals', {
    clientRequestId: `${++count}`,
    toolName: 'refund',
    inputHash: 'ab'.repeat(32),
    runId: 'r',
    ...fields,
  })

test('a stop says who confirmed it and what it rejected, is listed, and ends', async () => {
  const { id } = await ask({ agentId: 'support' })
  const key = { headers: { 'x-api-key': API_KEY, 'x-service-client-id': 'support-1' } }
  await (await fetch(`${server.url}/openapi/v1/runtime-config`, key)).text()
  const made = await server.text('stop', 'agent', 'support', '--reason', 'It pays twice', '--wait', '2')
  assert.match(made, /^Agent support is stopped\.\nThe environment has recorded no such agent/)
  assert.match(made, /Rejected: 1 waiting approval\.\nConfirmed by [01] of [01] client|No client asks/)
  assert.match(await server.text('approvals', 'show', id), /It pays twice/)
  const { items } = await server.json<{ items: Stop[] }>('stop', 'list')
  assert.deepEqual(
    items.map(({ scope, target, reason }) => [scope, target, reason]),
    [['agent', 'support', 'It pays twice']],
  )
  assert.match(
    await server.text('stop', 'agent', 'support', '--reason', 'again', '--wait', '1'),
    /is stopped already, by /,
  )
  assert.equal(await server.text('resume', 'agent', 'support', '--reason', 'Repaired'), 'Agent support can go on.\n')
  assert.match((await server.refused('resume', 'agent', 'support')).stderr, /is not stopped/)
  assert.deepEqual((await server.json<{ items: Stop[] }>('stop', 'list')).items, [])
  assert.match(await server.text('stop', 'list', '--ended'), /It pays twice/)
  await server.text('stop', 'environment', '--reason', 'Incident 81', '--wait', '1')
  assert.equal(await server.text('resume', 'environment'), 'The environment can go on.\n')
})

test('a standing approval is listed and revoked, and how often policies asked is counted', async () => {
  const rule = ['--severity', 'HIGH', '--action', 'REQUIRE_APPROVAL']
  await server.text('policies', 'create', 'refunds', '--condition', 'tool.name == "refund"', ...rule)
  await server.text('policies', 'deploy', 'refunds')
  const asked = { policyId: 'refunds', policyVersion: '1' }
  const { id } = await ask(asked)
  await server.text('approvals', 'approve', id, '--also', 'tool')
  const byGrant = await ask(asked)
  assert.equal(byGrant.status, 'APPROVED')
  const shown = await server.text('approvals', 'show', byGrant.id)
  assert.match(shown, /by .+ in a standing approval 2/)
  assert.match(shown, /The standing approval answered before an input was recorded/)
  const { items } = await server.json<{ items: ApprovalGrant[] }>('approvals', 'grants', 'list')
  const [grant] = items
  assert.ok(grant)
  assert.deepEqual([grant.scope, grant.state, grant.uses], ['tool', 'in_use', 1])
  assert.match(await server.text('approvals', 'grants', 'list'), /refund in run r/)
  assert.match(await server.text('approvals', 'grants', 'revoke', grant.id), /revoked\. It approved 1 call\./)
  const unknown = await server.refused('approvals', 'grants', 'revoke', 'nope')
  assert.match(unknown.stderr, /Unknown standing approval "nope": `tacho approvals grants list` shows those/)
  assert.equal((await ask(asked)).status, 'PENDING')
  assert.match(await server.text('approvals', 'asked'), /POLICY .*BY GRANT[^]*refunds/)
  assert.ok((await server.json<{ items: unknown[] }>('approvals', 'asked', '--hours', '1')).items.length > 0)
})

test('labels of tools are set from a file and listed; a file without labels removes none', async () => {
  const event = { eventId: 'e', clientId: 'cli', runId: 'r', agentName: 'a', eventType: 'TOOL_CALL', label: 'l' }
  await send('/events/batch', [{ ...event, timestamp: Date.now(), payload: { toolName: 'read_page' } }])
  const file = path.join(server.directory, 'tacho.yaml')
  writeFileSync(
    file,
    'labels:\n  - { tool: read_mail, output: [untrusted, private] }\n  - { tool: send_*, does: [external] }\n',
  )
  const { labels } = await server.json<ToolLabels>('labels', 'set', file)
  assert.deepEqual(
    labels.map(({ tool }) => tool),
    ['read_mail', 'send_*'],
  )
  const listed = await server.text('labels', 'list')
  assert.match(listed, /read_mail +untrusted, private/)
  assert.match(listed, /Labelled: 0 of 1 recorded tool\.\nWithout labels: read_page/)
  writeFileSync(file, 'policies: {}\n')
  assert.match((await server.refused('labels', 'set', file)).stderr, /has no labels/)
  assert.match(
    await server.text('policies', 'check', '--condition', '"privat" in run.labels', '-e', 'default/development'),
    /No rule gives the label privat; did you mean private/,
  )
  writeFileSync(file, 'labels: []\n')
  await server.text('labels', 'set', file)
  assert.deepEqual((await server.json<ToolLabels>('labels', 'list')).labels, [])
})

test('a ready set for an unknown environment writes no file', async () => {
  const directory = path.join(server.directory, 'sets')
  const init = (place: string) => ['policies', 'init', 'trifecta', '-d', directory, '-e', place]
  assert.match((await server.refused(...init('default/nope'))).stderr, /Unknown environment "default\/nope"/)
  assert.equal(existsSync(directory), false)
  assert.match(await server.text(...init('default/development')), /^Wrote/)
})
