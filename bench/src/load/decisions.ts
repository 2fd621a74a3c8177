/** Decides in a process of its own, by the policy engine or by the same rules written by hand. */
import { decide } from '@tacho/policy/decide.ts'
import type { Facts } from '@tacho/policy/variables.ts'
import { POLICIES, sampleFacts } from '../benchmarks/sample-policies.ts'
import { answer } from '../child.ts'
import { timesOf } from '../stats.ts'

export interface DecisionLoad {
  by: 'engine' | 'hand'
  policies: number
  seconds: number
}

export interface DecisionResult {
  perSecond: number
  p50Us: number
  p99Us: number
}

const FACTS = Array.from({ length: 64 }, (_, n) => sampleFacts(n))
/** Decisions between two looks at the clock, where single times are not taken. */
const STRIDE = 64

answer<DecisionLoad, DecisionResult>(({ by, policies, seconds }) => {
  const decideOnce = by === 'engine' ? engine(policies) : byHand(policies)
  const half = seconds * 500
  let [matches, decisions] = [0, 0]
  const begun = performance.now()
  for (let now = begun; now - begun < half; now = performance.now()) {
    for (const facts of FACTS) matches += decideOnce(facts)
    decisions += STRIDE
  }
  const perSecond = (decisions * 1000) / (performance.now() - begun)

  const took: number[] = []
  const end = performance.now() + half
  for (let from = performance.now(); from < end;) {
    matches += decideOnce(FACTS[took.length % FACTS.length] as Facts)
    const now = performance.now()
    took.push(now - from)
    from = performance.now()
  }
  if (matches === 0) throw new Error('No policy ever matched')
  const { p50, p99 } = timesOf(took)
  return { perSecond, p50Us: p50 * 1000, p99Us: p99 * 1000 }
})

/** As many as asked for: the sample over and over, each time with other texts, so that no condition is the same. */
function engine(count: number): (facts: Facts) => number {
  const policies = Array.from({ length: count }, (_, n) => {
    const sample = POLICIES[n % POLICIES.length] ?? POLICIES[0]
    const condition = n < POLICIES.length ? sample?.condition : `${sample?.condition} && agent.id != "none-${n}"`
    return { policyId: `policy-${n}`, name: `Policy ${n}`, version: '1', ...sample, condition: condition ?? '' }
  })
  return (facts) => {
    const { matched, failures } = decide(policies as Parameters<typeof decide>[0], facts)
    const [failure] = failures
    if (failure) throw new Error(`${failure.policyId}: ${failure.message}`)
    return matched.length
  }
}

function byHand(count: number): (facts: Facts) => number {
  const rules = Array.from({ length: count }, (_, n) => POLICIES[n % POLICIES.length]?.byHand)
  return (facts) => rules.filter((rule) => rule?.(facts)).length
}
