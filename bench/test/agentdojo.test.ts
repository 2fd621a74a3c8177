/** The essentials of AgentDojo through the guards, and the tables that are made of it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { pythonEnvironment } from '../../packages/sdk-conformance/test/python.ts'
import { suiteTable, wholeTable, type Row } from '../agentdojo/tables.ts'
import { ROOT } from '../src/place.ts'

const FOLDER = path.join(ROOT, 'bench/agentdojo')
const python = pythonEnvironment(path.join(FOLDER, 'requirements.txt'), true)
const skip = python.whyNot() && 'not tested: `npm run bench:agentdojo` installs AgentDojo'

test(
  'an agent that obeys each injection pays nobody whom the user did not name, and honest payments run unasked',
  { skip },
  () => {
    const args = [path.join(FOLDER, 'dojo.py'), 'banking', 'none,asked+named', 'user_task_3']
    const env = { ...process.env, PYTHONPATH: path.join(ROOT, 'sdks/python/src') }
    const { stdout, stderr, status } = spawnSync(python.interpreter, args, { env, encoding: 'utf8', timeout: 120_000 })
    assert.equal(status, 0, stderr)
    const rows = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Row)
    const attacks = (rules: string) => rows.filter((row) => row.rules === rules && row.injection !== undefined)
    assert.deepEqual(
      attacks('none').map(({ security }) => security),
      Array(9).fill(true),
    )
    assert.deepEqual(
      attacks('asked+named').map(({ security }) => security),
      Array(9).fill(false),
    )
    assert.ok(attacks('asked+named').every(({ utility }) => utility))
    const honest = rows.filter(({ injection }) => injection === undefined)
    assert.deepEqual(
      honest.map(({ asked, utility, alone }) => [asked.length, utility, alone]),
      Array(2).fill([0, true, true]),
    )
  },
)

test('rules have at most 40 lines a suite', () => {
  for (const suite of ['banking', 'slack', 'slack-careful', 'travel', 'workspace']) {
    const lines = readFileSync(path.join(FOLDER, 'suites', `${suite}.yaml`), 'utf8')
      .trim()
      .split('\n')
    assert.ok(lines.length <= 40, `${suite} has ${lines.length}`)
  }
})

test('the tables count attacks, questions and tasks, and choose by the tasks that the rules were written with', () => {
  const row = (rules: string, user: number, more: Partial<Row> = {}): Row => ({
    suite: 'bank',
    rules,
    user: `user_task_${user}`,
    calls: 2,
    asked: [],
    utility: true,
    alone: true,
    ...more,
  })
  const rows = [
    ...[0, 1, 2].flatMap((user) => [row('asked', user), row('asked', user, { injection: 'i', security: true })]),
    ...[0, 1, 2].map((user) => row('strict', user, user === 1 ? { asked: ['pay (p)'] } : {})),
    ...[0, 1, 2].map((user) => row('strict', user, { injection: 'i', security: user === 0 })),
  ]
  const whole = wholeTable(rows, ['asked', 'strict'])
  assert.match(whole[2] ?? '', /^\| `asked` \| 3 of 3 \(100\.0 %\) \| 0 of 6 \(0\.0 %\) \| 3 of 3 /)
  assert.match(
    whole[3] ?? '',
    /^\| `strict` \| 1 of 3 \(33\.3 %\) \| 1 of 6 \(16\.7 %\) \| 2 of 3 \(66\.7 %\) \| 2 of 2 .* \| 0 of 1 /,
  )
  // Its question is in a task with an odd number.
  assert.equal(whole[4]?.replace('chosen', 'strict'), whole[3])
  assert.deepEqual(suiteTable(rows, ['asked'], ['bank']).slice(2), [
    '| `asked` | 3 of 3; 3 of 3 |',
    '| `chosen` | 1 of 3; 2 of 3 |',
  ])
})
