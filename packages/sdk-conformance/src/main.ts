#!/usr/bin/env node
/**
 * Runs the client rules against an SDK: `tacho-sdk-conformance [--rule <part of id>] [--list] -- <command of an adapter>`.
 * Exit code 0: every rule holds; 1: one does not; 2: wrong usage.
 */
import { parseArgs } from 'node:util'
import { startAdapter } from './adapter.ts'
import { runRule, RULES } from './suite.ts'

/** Rules that run at the same time: most of them wait for timers. */
const AT_ONCE = 6

const { values, positionals } = parseArgs({
  options: { rule: { type: 'string', multiple: true, default: [] }, list: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const wanted = RULES.filter(
  ({ id }) => values.rule.length === 0 || values.rule.some((rulePart) => id.includes(rulePart)),
)

if (values.list) {
  for (const { id, title } of wanted) console.log(`${id.padEnd(32)} ${title}`)
} else if (positionals.length === 0 || wanted.length === 0) {
  console.error(wanted.length === 0 ? 'No rule matches.' : "Give the adapter's command after --.")
  process.exitCode = 2
} else {
  process.exitCode = (await runAll(positionals)) > 0 ? 1 : 0
}

/** Number of rules that the SDK breaks. */
async function runAll(command: readonly string[]): Promise<number> {
  const adapter = startAdapter(command)
  const left = [...wanted]
  let failed = 0
  async function work(): Promise<void> {
    for (let rule = left.shift(); rule; rule = left.shift()) {
      const verdict = await runRule(rule, adapter)
      console.log(`${verdict.ok ? '✔' : '✖'} ${rule.id.padEnd(32)} ${rule.title}`)
      if (verdict.ok) continue
      failed++
      console.log(verdict.problem.replaceAll(/^/gm, '    '))
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  await adapter.stop()
  console.log(`${wanted.length - failed} held, ${failed} broken`)
  return failed
}
