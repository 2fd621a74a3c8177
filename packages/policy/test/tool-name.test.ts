import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decide } from '../src/decide.ts'
import { toolNameOf } from '../src/language/tool-name.ts'

function actionOf(condition: string, tool: { name: string; server?: string }): string {
  const policy = {
    policyId: 'p',
    name: 'p',
    version: '1',
    condition,
    severity: 'LOW',
    action: 'BLOCK',
    onError: 'ignore',
  }
  return decide([policy], { tool, now: 0 }).action
}

test('one condition names the tool of a server in both spellings', () => {
  const condition = 'tool.server == "db" && tool.name == "drop_table"'
  assert.equal(actionOf(condition, { name: 'mcp__db__drop_table' }), 'BLOCK')
  assert.equal(actionOf(condition, { name: 'drop_table', server: 'db' }), 'BLOCK')
  assert.equal(actionOf(condition, { name: 'drop_table' }), 'ALLOW')
  assert.equal(actionOf(condition, { name: 'mcp__other__drop_table' }), 'ALLOW')
})

test('a condition without tool.server sees the name as the client says it', () => {
  assert.equal(actionOf('tool.name == "mcp__db__drop_table"', { name: 'mcp__db__drop_table' }), 'BLOCK')
  assert.equal(actionOf('tool.name == "drop_table"', { name: 'drop_table', server: 'db' }), 'BLOCK')
  // A tool of an MCP server must not pass an allow-list of tools without a server.
  assert.equal(actionOf('!(tool.name in ["Read", "Bash"])', { name: 'mcp__evil__Read' }), 'BLOCK')
})

test('policies that share facts each see their own name', () => {
  const policies = ['tool.name == "mcp__db__x"', 'tool.server == "db" && tool.name == "x"', 'tool.name == "mcp__db__x"']
  const matched = decide(
    policies.map((condition, index) => {
      return { policyId: `p${index}`, name: 'p', version: '1', condition, severity: 'LOW', action: 'WARN' }
    }),
    { tool: { name: 'mcp__db__x' }, now: 0 },
  ).matched
  assert.deepEqual(
    matched.map(({ policyId }) => policyId),
    ['p0', 'p1', 'p2'],
  )
})

test('server and name are found again, unless the server has two underscores in a row', () => {
  const part = fc.string({ minLength: 1 }).filter((text) => !text.includes('__') && !/^_|_$/.test(text))
  fc.assert(
    fc.property(part, fc.string({ minLength: 1 }), (server, own) => {
      assert.deepEqual(toolNameOf(`mcp__${server}__${own}`), { server, own })
      assert.deepEqual(toolNameOf(own, server), { server, own })
    }),
  )
})
