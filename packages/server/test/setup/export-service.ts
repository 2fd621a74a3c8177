/** An environment with rows in every table that an export has, its export, and its import elsewhere. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { IssuePage } from '@tacho/contract/issues/issue.ts'
import { eventually } from './eventually.ts'
import { issueRecord, reviewed } from './issue-service.ts'
import { newPerson } from '../http/people/browser.ts'
import { populate } from './route-samples.ts'
import { event, type Answer, type Service } from './service.ts'

export interface Exported {
  service: Service
  environmentId: string
}

/** JSON texts that an encoder would change. */
export const PAYLOADS = [
  '{"z":1.0,"a":-0,"n":12345678901234567890,"u":"\\u00fc \\u0000","z":2,"__proto__":{}}',
  '{\n  "pretty": [\r\n 1,\t2 ],\n "type": "end", "payload": "\\"payload\\":" }',
  '{"spanId":"in the payload","payloadText":"own"}',
  '{ }',
]

/** A tenant with rows in every table that an export has. */
export async function filled(
  service: Service,
): Promise<{ environmentId: string; workspaceId: string; apiKey: string }> {
  const { workspaceId, environmentId, apiKey, ids } = await populate(service, 'acme')
  const record = (events: unknown) => service.record(events, apiKey)
  const now = Date.now()
  for (const [index, payload] of PAYLOADS.entries()) {
    const sent = event({ runId: `exact ${index}`, timestamp: now - index, payload: 0, sessionId: `s${index}` })
    const { body } = await record(`[${JSON.stringify(sent).replace('"payload":0', `"payload":${payload}`)}]`)
    assert.equal(body.accepted, 1)
  }
  const run = (runId: string, change: Record<string, unknown>) => event({ runId, agentId: 'a-1', ...change })
  const call = { model: 'm-1', usage: { promptTokens: 3, completionTokens: 4 }, cost: 0.1, latency: 120 }
  const first = run('mixed', {
    timestamp: now,
    eventType: 'LLM_CALL',
    payload: { ...call, promptVersionId: ids['promptId'] },
  })
  // Arrives out of order, in several requests, with a differing retry, a second session and a second outcome.
  const labels = { userId: 'customer-7', runTags: ['beta', 'eu'], runMetadata: { task: 'refund', tries: 2 } }
  await record([first, run('mixed', { timestamp: now - 9_000, sessionId: 'later', payload: labels })])
  await record([{ ...first, label: 'differs' }, run('mixed', { sessionId: 'other', spanId: 's', parentSpanId: 'p' })])
  const failed = run('mixed', { eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' }, timestamp: now + 5 })
  await record([
    failed,
    run('mixed', { eventType: 'SESSION_OUTCOME', payload: { status: 'COMPLETED' }, timestamp: now }),
  ])
  await record([run('mixed', { eventType: 'ERROR', payload: { message: 'no' }, agentName: 'renamed' })])
  const score = (payload: object) => run('judged', { eventType: 'SCORE', payload, timestamp: now + 60_000 })
  await record([
    run('judged', {}),
    score({ name: 'accuracy', value: 0.1, comment: 'a\u0001b' }),
    score({ name: 'accuracy', value: 1e-7, author: 'judge', targetEventId: 'step' }),
    score({ name: 'tone', value: 'rude', author: '__proto__' }),
    score({ name: 'helpful', value: true }),
    score({ name: 'none' }),
  ])
  const dropped = { queue_full: [2, now] }
  await record([run('incomplete', { n: 'abcde1' }), run('incomplete', { n: 'abcde5.', dropped })])
  for (let sent = 0; sent < 13; sent++) {
    const step = (index: number) => ({
      runId: 'long',
      eventType: 'TOOL_CALL',
      payload: { toolName: `tool ${index % 7}` },
    })
    await record(Array.from({ length: 100 }, (_, index) => event({ ...step(index), timestamp: now - index * sent })))
  }
  const operator = async (path: string, body: object) => {
    const answer = await service.operator<Record<string, string>>(path, { body })
    assert.ok(answer.status < 300, answer.text)
    return answer.body
  }
  const at = `/environments/${environmentId}`
  await operator(`${at}/approvals/${ids['approvalId']}/decision`, { decision: 'APPROVED', reason: 'fine' })
  await operator(`${at}/issues/${ids['issueId']}/comments`, { text: 'Seen\nbefore' })
  const pretty = JSON.stringify(issueRecord({ runId: 'mixed', payload: { toolName: 'pay' } }), null, 1)
  await service.api('/issue-records', { body: pretty, headers: { 'x-api-key': apiKey } })
  await reviewed(service, environmentId)
  await operator(`/workspaces/${workspaceId}/prompts/${ids['promptId']}/versions`, { content: 'Hello\r\n ü\u2028' })
  await operator(`${at}/runs/long/pin`, {})
  await operator(`${at}/runs/judged/scores/give`, { name: 'accuracy', value: -0, comment: 'no\n', eventId: 'step' })
  const items = [
    { kind: 'policy', id: ids['policyId'], version: '1' },
    { kind: 'prompt', id: ids['promptId'], version: '2' },
  ]
  await operator(`${at}/deployments`, { items })
  await archiveSome(service, workspaceId, environmentId)
  await holdCalls(service, environmentId, apiKey)
  await decideBeforehand(service, { workspaceId, environmentId, apiKey })
  await noticed(service, environmentId)
  return { environmentId, workspaceId, apiKey }
}

/** Waits until the service has opened issues for the failures. Otherwise, a later export would have more rows. */
async function noticed(service: Service, environmentId: string): Promise<void> {
  await eventually(async () => {
    const { body } = await service.operator<IssuePage>(`/environments/${environmentId}/issues`)
    const types = new Set(body.items.map(({ detectionType }) => detectionType))
    return types.has('run_failed') && types.has('error_recorded')
  }, 'issues of a failed run and a recorded error')
}

/** Adds a request that one of two people approved, and two requests where the grant of the first covers the second. */
async function decideBeforehand(
  service: Service,
  { workspaceId, environmentId, apiKey }: Record<'workspaceId' | 'environmentId' | 'apiKey', string>,
): Promise<void> {
  const person = await newPerson(service, `${randomUUID()}@example.com`, 'owner', workspaceId)
  const ask = async (policyId: string, approvers: number): Promise<string> => {
    const toolName = approvers === 2 ? 'pay twice' : 'pay once'
    // Conditions that match the recorded calls, because the service derives recorded decisions again.
    const policy = { policyId, condition: `tool.name == "${toolName}"`, severity: 'HIGH', action: 'REQUIRE_APPROVAL' }
    const path = `/workspaces/${workspaceId}/policies`
    const known = await service.operator(`${path}/${policyId}`)
    if (known.status === 404) {
      await service.operator(path, { body: { ...policy, approvers } })
      const items = [{ kind: 'policy', id: policyId, version: '1' }]
      const deployed = await service.operator(`/environments/${environmentId}/deployments`, { body: { items } })
      assert.equal(deployed.status, 200, deployed.text)
    }
    const body = {
      clientRequestId: randomUUID(),
      toolName,
      inputHash: 'ab'.repeat(32),
      runId: 'again',
      policyId,
    }
    const headers = { 'x-api-key': apiKey, 'x-service-client-id': 'again' }
    const asked = await service.api<{ id: string }>('/firewall-approvals', { body, headers })
    assert.equal(asked.status, 201, asked.text)
    return asked.body.id
  }
  const approve = async (id: string, more: object) => {
    const path = `/environments/${environmentId}/approvals/${id}/decision`
    const answer = await person.post(path, { decision: 'APPROVED', reason: 'fine', ...more })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }
  const first = await ask('for-two', 2)
  const said = { action: 'REQUIRE_APPROVAL', approvalId: first, toolName: 'pay twice', inputHash: 'ab'.repeat(32) }
  const payload = { ...said, policyVersions: { 'for-two': '1' } }
  const held = event({ clientId: 'again', runId: 'again', eventType: 'POLICY_DECISION', payload })
  assert.equal((await service.record([held], apiKey)).body.accepted, 1)
  await approve(first, {})
  await approve(await ask('for-one', 1), { grant: { scope: 'input' } })
  await ask('for-one', 1)
}

/** Adds two requests that together have a value in every column of approvals: one ran, the other was withdrawn. */
async function holdCalls(service: Service, environmentId: string, apiKey: string): Promise<void> {
  const [toolName, inputHash, clientId, runId] = ['pay', 'cd'.repeat(32), 'held', 'held']
  const headers = { 'x-api-key': apiKey, 'x-service-client-id': clientId }
  const ask = async (own: object): Promise<string> => {
    const ids = { clientRequestId: randomUUID(), runId, sessionId: 's', agentId: 'a-2', toolCallId: 'call_1' }
    const asked = { toolName, inputHash, reason: 'over the limit', policyId: 'old', policyVersion: '1' }
    const { status, body, text } = await service.api<{ id: string }>('/firewall-approvals', {
      headers,
      body: { ...ids, ...asked, ...own },
    })
    assert.equal(status, 201, text)
    return body.id
  }
  const say = async (approvalId: string, eventType: string, own: object = {}) => {
    const said = event({ clientId, runId, eventType, payload: { approvalId, toolName, inputHash, ...own } })
    assert.equal((await service.record([said], apiKey)).body.accepted, 1)
  }
  // The client says that it records no input for this request.
  const ran = await ask({ recordsInput: false, inputHashScheme: 'own' })
  const path = `/environments/${environmentId}/approvals/${ran}/decision`
  const decided = await service.operator(path, { body: { decision: 'APPROVED' } })
  assert.equal(decided.status, 200, decided.text)
  await say(ran, 'TOOL_START')
  const withdrawn = await ask({ recordsInput: true })
  await say(withdrawn, 'POLICY_DECISION', { input: { amount: 5 } })
  await say(withdrawn, 'APPROVAL_WITHDRAWN', { reason: 'timeout' })
}

/** Archives a prompt and a policy that were deployed, and an agent with a given name. A draft stays. */
async function archiveSome(service: Service, workspaceId: string, environmentId: string): Promise<void> {
  const act = async (path: string, body: object) => {
    const { status, text } = await service.operator(path, { body })
    assert.ok(status < 300, text)
  }
  const at = `/workspaces/${workspaceId}`
  const prompt = await service.operator<{ promptId: string }>(`${at}/prompts`, { body: { name: 'old', content: 'x' } })
  await act(`${at}/policies`, { policyId: 'old', condition: 'true', severity: 'LOW', action: 'WARN' })
  await act(`${at}/prompts`, { name: 'draft', content: 'x' })
  await act(`${at}/policies`, { policyId: 'draft', condition: 'true', severity: 'LOW', action: 'WARN' })
  for (const version of ['1', null]) {
    const items = [
      { kind: 'prompt', id: prompt.body.promptId, version },
      { kind: 'policy', id: 'old', version },
    ]
    await act(`/environments/${environmentId}/deployments`, { items })
  }
  await act(`${at}/prompts/${prompt.body.promptId}/archive`, {})
  await act(`${at}/policies/old/archive`, {})
  const agents = `/environments/${environmentId}/agents`
  const { items } = (await service.operator<{ items: { id: string; agentId: string | null }[] }>(agents)).body
  const agent = items.find(({ agentId }) => agentId === 'a-1') ?? assert.fail('no agent a-1')
  await act(`${agents}/${agent.id}/rename`, { name: 'Refunds' })
  await act(`${agents}/${agent.id}/archive`, {})
}

export const pathOf = ({ environmentId }: Exported, query = '') => `/environments/${environmentId}/export${query}`

export async function exported(from: Exported, query = ''): Promise<string> {
  const answer = await from.service.operator(pathOf(from, query))
  assert.equal(answer.status, 200, answer.text)
  return answer.text
}

export const linesOf = (text: string): string[] => text.split('\n').slice(0, -1)
export const typeOf = (line: string): string => (JSON.parse(line) as { type: string }).type
export const ofType = (text: string, type: string) =>
  linesOf(text)
    .filter((line) => typeOf(line) === type)
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** Splits an export into import requests. Each begins with the head line, and events follow the line of their run. */
export function requestsOf(text: string, most = 700): string[][] {
  const [head = '', ...lines] = linesOf(text)
  const requests: string[][] = [[head]]
  let run: string | null = null
  for (const line of lines) {
    if (typeOf(line) === 'run') run = line
    const last = requests.at(-1)
    if (last && last.length < most) last.push(line)
    else requests.push([head, ...(run !== null && typeOf(line) === 'event' ? [run] : []), line])
  }
  return requests
}

export async function restore(into: Exported, requests: string[][], resume = false) {
  const sums = { written: 0, known: 0 }
  for (const lines of requests) {
    const answer = await send(into, lines, resume || lines !== requests[0])
    assert.equal(answer.status, 200, answer.text)
    sums.written += answer.body.written
    sums.known += answer.body.known
  }
  return sums
}

export function send(
  into: Exported,
  lines: string[],
  resume = false,
): Promise<Answer<{ written: number; known: number }>> {
  return into.service.operator(`/environments/${into.environmentId}/import`, { body: { lines, resume } })
}
