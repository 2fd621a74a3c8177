import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, test } from 'node:test'
import { runCommand } from '../tacho.ts'

const directory = mkdtempSync(path.join(tmpdir(), 'tacho-policies-test-'))
after(() => rmSync(directory, { recursive: true }))
const file = path.join(directory, 'tacho.yaml')
writeFileSync(
  file,
  `policies:
  refunds: { condition: 'tool.name == "refund" && tool.input.amount > 100.0', severity: LOW, action: REQUIRE_APPROVAL }
  drops: { condition: 'tool.server == "db" && tool.name == "drop_table"', severity: LOW, action: BLOCK, onError: ignore }
`,
)
const examples = path.join(directory, 'policies.test.yaml')
const run = (text: string, ...args: string[]) => {
  writeFileSync(examples, text)
  return runCommand(['policies', 'test', '-f', file, ...args])
}

const GOOD = `
- { tool: refund, input: { amount: 500 }, expect: REQUIRE_APPROVAL, policies: [refunds] }
- { tool: refund, input: { amount: 30 }, expect: ALLOW, policies: [] }
- { name: arguments without names, tool: refund, input: { args: ['1007', 30] }, expect: REQUIRE_APPROVAL }
- { tool: mcp__db__drop_table, expect: BLOCK, policies: [drops] }
- { tool: drop_table, server: db, expect: BLOCK }
`

test('examples are decided as agents decide them, without a server', async () => {
  const { code, stdout } = await run(GOOD)
  assert.deepEqual([code, stdout], [0, '5 of 5 examples decided as expected.\n'])
  assert.equal((await run(JSON.stringify({ tests: [{ tool: 'x', expect: 'ALLOW' }] }))).code, 0)
})

test('an example that is decided otherwise is named with the reason, and fails the command', async () => {
  const junit = path.join(directory, 'policies.xml')
  const text = `- { name: 'a <b> & "c"', tool: refund, input: { args: [30] }, expect: ALLOW }\n- { tool: drop_table, expect: ALLOW }\n`
  const { code, stdout } = await run(text, '--junit', junit)
  const reason = 'the condition of refunds could not be evaluated: line 1, column 26: missing key "amount"'
  assert.equal(code, 1)
  assert.ok(
    stdout.startsWith(`✗ 1 a <b> & "c": expected ALLOW, but it is REQUIRE_APPROVAL by refunds; ${reason}`),
    stdout,
  )
  assert.match(stdout, /\n1 of 2 examples decided as expected\.\n$/)
  const xml = readFileSync(junit, 'utf8')
  assert.match(xml, /<testsuite name="tacho policies test" tests="2" failures="1">/)
  assert.match(xml, /name="1 a &lt;b&gt; &amp; &quot;c&quot;"><failure message="expected ALLOW, but/)
  const other = await run(
    '- { tool: refund, input: { amount: 500 }, expect: REQUIRE_APPROVAL, policies: [drops] }',
    '--json',
  )
  assert.deepEqual([other.code, (JSON.parse(other.stdout) as { failed: number }).failed], [1, 1])
})

test('a file that is no list of examples is invalid', async () => {
  for (const [text, why] of [
    ['{}', /list of examples/],
    ['[]', /list of examples/],
    ['- x', /example 1 is not a mapping/],
    ['- { tool: a, expect: deny }', /needs expect: one of ALLOW/],
    ['- { expect: ALLOW }', /needs tool/],
    ['- { tool: a, expect: ALLOW, inputs: {} }', /unknown field inputs/],
    ['- { tool: a, expect: ALLOW, policies: [other] }', /policies of example 1/],
    ['- { tool: a, expect: ALLOW, now: soon }', /now of example 1/],
    ['- [', /policies\.test\.yaml: /],
  ] as const) {
    const { code, stderr } = await run(text)
    assert.equal(code, 2, text)
    assert.match(stderr, why)
  }
})
