/** Tests that cannot hold on a Citus cluster. They count as skipped there, with the reason. */
import { describe as suite, test as single, type SuiteContext, type TestContext } from 'node:test'
import { isCitus } from './administer.ts'

const TRIGGER = 'Citus refuses triggers on distributed tables; the test fails inserts with one'

const REASONS: { name: RegExp; reason: string }[] = [
  { name: /^that fails while \w+ are written stores nothing of the batch/, reason: TRIGGER },
  { name: /^that fails for one run of a batch stores nothing/, reason: TRIGGER },
  { name: /^whose disk is full makes writes be refused/, reason: TRIGGER },
  { name: /^where it may not make its tables$/, reason: 'a test database on Citus has its tables already' },
  { name: /^plans$/, reason: 'EXPLAIN on Citus nests the plans of shards, whose tables have other names' },
]

const given = process.env['TACHO_TEST_DATABASE_URL']
const reasons = given && (await isCitus(given)) ? REASONS : []

function skip(name: string): string | false {
  return reasons.find((one) => one.name.test(name))?.reason ?? false
}

export function test(name: string, run: (t: TestContext) => unknown): void {
  void single(name, { skip: skip(name) }, run as (t: TestContext) => Promise<void>)
}

export function describe(name: string, run: (s: SuiteContext) => unknown): void {
  void suite(name, { skip: skip(name) }, run as (s: SuiteContext) => Promise<void>)
}
