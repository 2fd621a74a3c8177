/** The process that decides: with the policy engine, with handwritten rules, or with the SDK's guard. */
import { decide } from '@tacho/policy/decide.ts'
import type { Facts } from '@tacho/policy/language/variables.ts'
import { Tacho } from '@tacho/sdk'
import { POLICIES, sampleFacts, type SamplePolicy } from '../benchmarks/sample-policies.ts'
import { answer } from '../child.ts'
import { rateOf, type Rate } from '../stats.ts'

export interface DecisionLoad {
  by: 'engine' | 'hand' | 'guard'
  policies: number
  seconds: number
}

const FACTS = Array.from({ length: 64 }, (_, n) => sampleFacts(n))
/** Decisions between two readings of the clock, when only the rate is measured. */
const STRIDE = 64

answer<DecisionLoad, Rate>(async ({ by, policies, seconds }) => {
  if (by === 'guard') return guarded(policies, seconds)
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
  return rateOf(took, perSecond)
})

/**
 * `tacho.decide`: hashes the input, runs detectors and policies, and records each decision that matters. A service in this
 * process accepts the events between two decisions.
 */
async function guarded(count: number, seconds: number): Promise<Rate> {
  const configuration = { revision: 'r1', prompts: [], policies: samples(count) }
  const serve = (url: string, { body }: { body?: string | Uint8Array }) => {
    if (url.endsWith('/runtime-config')) return Promise.resolve(Response.json(configuration))
    const accepted = (JSON.parse(String(body)) as unknown[]).length
    const verdict = { success: true, accepted, retryableEventIds: [], rejectedEventIds: [], rejections: [] }
    return Promise.resolve(Response.json(verdict))
  }
  const tacho = new Tacho({ apiKey: 'bench', baseUrl: 'http://localhost', compression: 'never', fetch: serve })
  if (!(await tacho.configuration.ready())) throw new Error('The configuration was refused')
  const took: number[] = []
  const begun = performance.now()
  const end = begun + seconds * 1_000
  while (performance.now() < end) {
    // A new run after 64 calls, as with real agents. Events are delivered between runs.
    await tacho.run({ agentId: 'agent-1', agentName: 'Support agent' }, async () => {
      for (const { tool, risk } of FACTS) {
        const call = { toolName: tool.name, input: tool.input, riskSignals: risk?.signals ?? [] }
        const from = performance.now()
        await tacho.decide(call)
        took.push(performance.now() - from)
      }
    })
    await tacho.flush()
  }
  const { rejected, dropped } = tacho.counters()
  if (rejected > 0 || Object.keys(dropped).length > 0) throw new Error(JSON.stringify(tacho.counters()))
  await tacho.shutdown(0)
  return rateOf(took, (took.length * 1000) / took.reduce((sum, each) => sum + each, 0))
}

/** Repeats the sample policies with other texts, so that no two conditions are equal. */
function samples(count: number) {
  return Array.from({ length: count }, (_, n) => {
    const { condition, severity, action } = POLICIES[n % POLICIES.length] as SamplePolicy
    const own = n < POLICIES.length ? condition : `${condition} && agent.id != "none-${n}"`
    return { policyId: `policy-${n}`, name: `Policy ${n}`, version: '1', severity, action, condition: own }
  })
}

function engine(count: number): (facts: Facts) => number {
  const policies = samples(count)
  return (facts) => {
    const { matched, failures } = decide(policies, facts)
    const [failure] = failures
    if (failure) throw new Error(`${failure.policyId}: ${failure.message}`)
    return matched.length
  }
}

function byHand(count: number): (facts: Facts) => number {
  const rules = Array.from({ length: count }, (_, n) => POLICIES[n % POLICIES.length]?.byHand)
  return (facts) => rules.filter((rule) => rule?.(facts)).length
}
