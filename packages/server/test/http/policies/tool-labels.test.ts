import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import type { ToolLabels } from '@tacho/contract/policies/tool-labels.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const path = () => `/environments/${service.environmentId}/tool-labels`
const change = (labels: object[]) => service.operator<ToolLabels>(`${path()}/change`, { body: { labels } })
const read = async () => (await service.operator<ToolLabels>(path())).body
const served = async () => (await service.api<RuntimeConfig>('/runtime-config')).body

test('labels are served at once, beside stops, and are absent again when there are none', async () => {
  const first = await served()
  assert.equal(Object.hasOwn(first, 'toolLabels'), false)
  const rule = { tool: 'read_mail', output: ['untrusted'], when: 'tool.output.from.endsWith("@strangers.example")' }
  const { status, body } = await change([rule, { tool: 'send_*', does: ['external', 'external'], output: [] }])
  assert.equal(status, 200)
  const stored = [rule, { tool: 'send_*', does: ['external'] }]
  assert.deepEqual([body.labels, (await read()).labels, (await served()).toolLabels], [stored, stored, stored])
  const stops = `/environments/${service.environmentId}/stops`
  const { body: stop } = await service.operator<{ id: string }>(stops, { body: { scope: 'environment', reason: 'x' } })
  assert.deepEqual((await served()).toolLabels, stored)
  await service.operator(`${stops}/${stop.id}/resume`, { body: {} })
  assert.equal((await change([])).status, 200)
  assert.deepEqual(await served(), first)
})

test('rules that no client could use are refused with their place', async () => {
  const most = LIMITS.toolLabelsOfOutputs
  const faults: [object[], RegExp][] = [
    [[{ tool: 'a', output: ['x'], when: 'tool.output.x ==' }], /labels\/0\/when/],
    [[{ tool: 'a', does: ['x'] }, { tool: 'b' }], /labels\/1 must give labels/],
    [[{ tool: 'a*b*', does: ['x'] }], /one \*/],
    [[{ tool: 'a', output: ['user'] }], /must not give the label user/],
    [[{ tool: 'a', output: ['Private'] }], /labels/],
    [[{ tool: 'a', does: ['money'], when: 'tool.output.x == 1.0' }], /reads tool.output/],
    [[{ tool: 'a', does: ['money'], when: 'has(tool . output . x)' }], /reads tool.output/],
    // Clients do not know these variables when they assign labels.
    [[{ tool: 'a', output: ['x'], when: 'agent.name == "b"' }], /only, not agent\.name/],
    [[{ tool: 'a', output: ['x'], when: '"y" in run.labels' }], /only, not run\.labels/],
    [[{ tool: 'a', output: ['x'], when: 'run.cost > 1.0' }], /only, not run\.cost/],
    [[{ tool: 'a', output: ['x'], when: '"user" in origin(tool.input.to)' }], /only, not origin/],
    [Array.from({ length: most + 1 }, (_, n) => ({ tool: 'a', output: [`x${n}`] })), new RegExp(`tell ${most} apart`)],
    [Array.from({ length: LIMITS.toolLabelRules + 1 }, () => ({ tool: 'a', does: ['x'] })), /labels/],
  ]
  for (const [labels, said] of faults) {
    const { status, text } = await change(labels)
    assert.equal(status, 400, text)
    assert.match(text, said)
  }
  assert.deepEqual((await read()).labels, [])
})

test('the coverage counts recorded tools, in either spelling', async () => {
  const tools = ['read_mail', 'send_mail', 'mcp__github__list', 'other']
  await service.record(tools.map((toolName) => event({ eventType: 'TOOL_CALL', payload: { toolName, output: 1 } })))
  await change([
    { tool: '*_mail', does: ['external'] },
    { tool: 'list', output: ['untrusted'] },
  ])
  assert.deepEqual((await read()).coverage, { tools: 4, labelled: 3, unlabelled: ['other'] })
})
