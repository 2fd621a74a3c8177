/** How long an agent waits for its policies before a tool call. */
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { DecisionLoad } from '../load/decisions.ts'
import { below, row, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Rate } from '../stats.ts'

const COUNTS = [10, 100]

export const policies: Benchmark = {
  name: 'policies',
  title: 'Policy decisions',
  part: 'policies',
  about: [
    'One call of `decide()` with 10 and with 100 policies, like the SDK before a tool runs. The conditions use lists of tool names, amounts, texts with \
a regular expression, the cost of the run so far and risk signals. The facts differ from call to call. Conditions are compiled before, as in a \
running agent. Half of the time counts decisions, the other half measures the time of each.',
    '**In the SDK** is one `tacho.decide()` with 10 policies. It also hashes the input, looks for loops, and records its decision.',
    'The bare limit is the same rules written by hand in JavaScript: no language, no bounds on work, no record of the matches.',
  ],
  run: async (setting) => {
    const seconds = setting.plan.seconds / 4
    await using load = startChild<DecisionLoad, Rate>(new URL('../load/decisions.ts', import.meta.url))
    const rows: Row[] = []
    for (const policies of COUNTS) {
      const decide = (by: DecisionLoad['by']) => () => load.call({ by, policies, seconds })
      const { engine, bare } = await inTurn(
        setting,
        { engine: decide('engine'), bare: decide('hand') },
        { warmUp: true },
      )
      const what = `${policies} policies`
      rows.push(
        row(what, '/s', engine.perSecond, bare.perSecond),
        row(`${what}, p50`, 'µs', engine.p50Us, bare.p50Us),
        row(`${what}, p99`, 'µs', engine.p99Us, bare.p99Us, ...(policies === 10 ? [below(25)] : [])),
      )
    }
    const inSdk = () => load.call({ by: 'guard', policies: 10, seconds })
    const { guard } = await inTurn(setting, { guard: inSdk }, { warmUp: true })
    rows.push(row('in the SDK, p50', 'µs', guard.p50Us), row('in the SDK, p99', 'µs', guard.p99Us))
    return { rows, notes: [] }
  },
}
