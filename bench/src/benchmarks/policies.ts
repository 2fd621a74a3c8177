/** How long an agent waits for its policies before a tool call. */
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { DecisionLoad, DecisionResult } from '../load/decisions.ts'
import { row, type Row } from '../result.ts'
import { whole } from '../text.ts'

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
  run: async ({ plan, say }) => {
    await using load = startChild<DecisionLoad, DecisionResult>(new URL('../load/decisions.ts', import.meta.url))
    const rows: Row[] = []
    for (const count of COUNTS) {
      const [ours, bares]: [DecisionResult[], DecisionResult[]] = [[], []]
      for (let round = 0; round <= plan.rounds; round++) {
        const seconds = plan.seconds / 4
        const result = await load.call({ by: 'engine', policies: count, seconds })
        const bare = await load.call({ by: 'hand', policies: count, seconds })
        // The first round warms up.
        if (round === 0) continue
        ours.push(result)
        bares.push(bare)
        say(`${count} policies, round ${round}: ${whole(result.perSecond)}/s, p99 ${result.p99Us.toFixed(1)} µs`)
      }
      const figures = (name: keyof DecisionResult) => ({
        ours: ours.map((result) => result[name]),
        bare: bares.map((result) => result[name]),
      })
      const budgets = count === 10 ? [{ of: 'ours', is: 'below', limit: 25 } as const] : []
      rows.push(
        row({ what: `${count} policies`, unit: '/s', better: 'more', ...figures('perSecond') }),
        row({ what: `${count} policies, p50`, unit: 'µs', better: 'less', ...figures('p50Us') }),
        row({ what: `${count} policies, p99`, unit: 'µs', better: 'less', ...figures('p99Us'), budgets }),
      )
    }
    const guard: DecisionResult[] = []
    for (let round = 0; round <= plan.rounds; round++) {
      const result = await load.call({ by: 'guard', policies: 10, seconds: plan.seconds / 4 })
      if (round > 0) guard.push(result)
    }
    rows.push(
      row({ what: 'in the SDK, p50', unit: 'µs', better: 'less', ours: guard.map(({ p50Us }) => p50Us) }),
      row({ what: 'in the SDK, p99', unit: 'µs', better: 'less', ours: guard.map(({ p99Us }) => p99Us) }),
    )
    return { rows, notes: [] }
  },
}
