/** docs/sdk/both.md names what this SDK has, and nothing else. sdks/python/tests/test_both.py does the same in Python. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { Tacho } from '../src/index.ts'
import { RuntimeConfiguration } from '../src/lazy-control.ts'
import { Recorder } from '../src/recorder.ts'
import { Run } from '../src/recording/run.ts'
import { fakeTacho } from '../src/testing/fake-tacho.ts'

const read = (file: string): string => readFileSync(fileURLToPath(new URL(`../../../${file}`, import.meta.url)), 'utf8')

const membersOf = (noun: string, made: { prototype: object }): string[] =>
  Object.getOwnPropertyNames(made.prototype)
    .filter((name) => name !== 'constructor')
    .map((name) => `${noun}.${name}`)

/** The fields of an interface, written as `{ option: { field } }`. */
function partsOf(option: string, file: string, name: string): string[] {
  const source = read(file)
  const body = source.slice(source.indexOf(`export interface ${name} `))
  const fields = [...body.slice(0, body.indexOf('\n}\n')).matchAll(/^ {2}(\w+)\??:/gm)].map(
    ([, field]) => `${option}.${field}`,
  )
  assert.ok(fields.length > 0, name)
  return fields
}

test('docs/sdk/both.md names every function and option of this SDK, and no other', async () => {
  const rows = [...read('docs/sdk/both.md').matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].slice(1)
  assert.ok(rows.length > 30)
  const named = rows.flatMap(([, , typescript = '']) => {
    const names = [...typescript.matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? '')
    assert.equal(names.length === 0, typescript.startsWith('none'), typescript)
    return names
  })
  const options = read('packages/sdk/src/options.ts')
  const body = options.slice(options.indexOf('export interface TachoOptions'), options.indexOf('\n}\n'))
  const fake = fakeTacho()
  await fake.close()
  const has = [
    'new Tacho',
    'new Recorder',
    'fakeTacho',
    'replay',
    ...membersOf('tacho', Recorder),
    ...membersOf('tacho', Tacho),
    // Internal methods. The end of the process, a pending call and the last background call use them.
    ...membersOf('run', Run).filter((name) => !['run.fail', 'run.handOver', 'run.complete'].includes(name)),
    ...membersOf('configuration', RuntimeConfiguration),
    ...[...body.matchAll(/^ {2}(\w+)\??:/gm)].map(([, name]) => `{ ${name} }`),
    ...partsOf('masking', 'packages/sdk/src/recording/mask.ts', 'MaskingOptions'),
    ...partsOf('guard', 'packages/sdk/src/guard/rules.ts', 'GuardRules'),
    ...partsOf('guard', 'packages/sdk/src/guard/rules.ts', 'GuardDefaults'),
    ...partsOf('loop', 'packages/sdk/src/guard/detectors.ts', 'LoopOptions'),
    ...partsOf('budget', 'packages/sdk/src/guard/detectors.ts', 'BudgetOptions'),
    ...Object.keys(fake).map((name) => `fake.${name}`),
  ]
  assert.deepEqual([...new Set(named)].sort(), [...new Set(has)].sort())
})
