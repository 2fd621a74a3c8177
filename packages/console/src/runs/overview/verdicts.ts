/** Conclusions of the overview: a period compared with the previous one, and issues that look alike. Pure. */
import { BY_OUTCOME } from '@tacho/contract/issues/failure.ts'
import type { IssueSummary } from '@tacho/contract/issues/issue.ts'
import type { RunFailure } from '@tacho/contract/runs/operator-run.ts'
import { areMeansDifferent, type Sums } from '@tacho/contract/runs/statistics.ts'
import type { DeploymentChange } from '@tacho/contract/policies/deployment.ts'
import { costsOf, wholeCost } from '../../web/text/costs.ts'

type Costing = Parameters<typeof costsOf>[0]

/** A cause of failed runs, with the number of runs. */
export interface Cause {
  /** Short text, such as `refund_payment 503`. */
  text: string
  /** The whole failure text of one of these runs. */
  whole: string
  /** The tool that failed; null if no tool failed. */
  tool: string | null
  /** The newest of these runs. */
  runId: string | null
  runs: number
}

/** The most frequent cause among failed runs. */
export function mostCause(runs: readonly { failure: RunFailure | null; runId?: string }[]): Cause | null {
  const causes = new Map<string, Cause>()
  for (const { failure, runId = null } of runs) {
    const cause = { ...causeOf(failure), runId }
    const counted = causes.get(cause.text) ?? cause
    causes.set(cause.text, counted)
    counted.runs++
  }
  return [...causes.values()].reduce<Cause | null>(
    (most, cause) => (most === null || cause.runs > most.runs ? cause : most),
    null,
  )
}

const STATUS = /\b[45]\d\d\b/
const CAUSE_CHARS = 60

function causeOf(failure: RunFailure | null): Omit<Cause, 'runId'> {
  const facts = failure === null ? [] : [failure.errorClass, failure.message].filter((fact) => fact !== null)
  if (failure === null || facts.length === 0) {
    return { text: BY_OUTCOME, whole: 'No event says why.', tool: null, runs: 0 }
  }
  const { name, place } = failure
  const whole = facts.join(': ')
  // Mask the parts that differ between runs, such as ids and amounts, so that they do not count as other causes.
  const masked = whole.replaceAll(/\S*\d\S*/g, '…').slice(0, CAUSE_CHARS)
  const status = STATUS.exec(whole)?.[0]
  const text = name === null ? masked : status === undefined ? `${name}: ${masked}` : `${name} ${status}`
  return { text, whole: name === null ? whole : `${name}: ${whole}`, tool: place === 'tool' ? name : null, runs: 0 }
}

/** Smaller increases are not reported. */
const LEAST_FACTOR = 1.25
const LEAST_RUNS = 10
/** Maximum number of candidates: checking one reads its runs. */
const CANDIDATES = 3

interface AgentCost extends Costing {
  key: string
  name: string | null
  runs: number
}

const perRun = (agent: AgentCost): number => wholeCost(costsOf(agent)) / agent.runs

/** Agents whose mean cost per run rose enough to check their runs, largest increase first. */
export function dearerAgents<Agent extends AgentCost>(agents: readonly Agent[], before: readonly Agent[]): Agent[] {
  const earlier = new Map(before.map((agent) => [agent.key, agent]))
  const more = (agent: Agent) => {
    const was = earlier.get(agent.key)
    if (was === undefined || Math.min(agent.runs, was.runs) < LEAST_RUNS || wholeCost(costsOf(was)) === 0) return 0
    return perRun(agent) >= LEAST_FACTOR * perRun(was) ? agent.runs * (perRun(agent) - perRun(was)) : 0
  }
  return agents
    .filter((agent) => more(agent) > 0)
    .sort((a, b) => more(b) - more(a))
    .slice(0, CANDIDATES)
}

/** Sums the costs of runs whose cost is completely known. */
export function costSums(runs: readonly Costing[]): Sums {
  const costs = runs
    .map(costsOf)
    .filter((cost) => cost.unpriced === 0 && cost.tokens > 0)
    .map(wholeCost)
  const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
  return { count: costs.length, sum: sum(costs), squares: sum(costs.map((cost) => cost ** 2)) }
}

export const mean = ({ count, sum }: Sums): number => sum / count

/** Whether the sampled runs cost significantly more than those of the previous period. */
export const areDearer = (now: Sums, before: Sums): boolean =>
  now.count > 0 && before.count > 0 && mean(now) >= LEAST_FACTOR * mean(before) && areMeansDifferent(now, before)

interface Step extends Costing {
  /** Start, in ISO 8601. */
  from: string
  runs: number
}

/** In milliseconds: the step with which a change begins, and the last step before it that has runs. */
interface Change {
  at: number
  after: number
}

/** The time when the cost per run rose the most. Null if it did not rise. */
export function changedAt(steps: readonly Step[]): Change | null {
  const used = steps
    .filter(({ runs }) => runs > 0)
    .map((step) => ({ at: Date.parse(step.from), runs: step.runs, cost: wholeCost(costsOf(step)) }))
    .sort((a, b) => a.at - b.at)
  const all = used.reduce((sum, { runs, cost }) => ({ runs: sum.runs + runs, cost: sum.cost + cost }), NONE)
  let [before, best, change] = [NONE, 0, null as Change | null]
  for (const [index, step] of used.entries()) {
    const after = { runs: all.runs - before.runs, cost: all.cost - before.cost }
    if (before.runs > 0) {
      const weight = Math.sqrt((before.runs * after.runs) / all.runs)
      const distance = weight * (after.cost / after.runs - before.cost / before.runs)
      if (distance > best) [best, change] = [distance, { at: step.at, after: used[index - 1]?.at ?? step.at }]
    }
    before = { runs: before.runs + step.runs, cost: before.cost + step.cost }
  }
  return change
}

const NONE = { runs: 0, cost: 0 }

/**
 * The deployment that may explain a change: one at that time, of a prompt if there is one, and the last one of several.
 * Null if nothing was deployed then.
 * `changes`: newest first.
 */
export function deployedThen(
  changes: readonly DeploymentChange[],
  { at, after }: Change,
  stepMs: number,
): DeploymentChange | null {
  const near = changes.filter((change) => {
    const time = Date.parse(change.at)
    return change.to !== null && time >= after && time < at + stepMs
  })
  return near.find(({ kind }) => kind === 'prompt') ?? near[0] ?? null
}

/** An increase in words: `doubled`, `rose by 40 %`. */
export function roseWords(factor: number): string {
  if (factor >= 1.9 && factor <= 2.1) return 'doubled'
  if (factor >= 2.85 && factor <= 3.15) return 'tripled'
  return factor > 3 ? `rose ${Number(factor.toPrecision(2))}-fold` : `rose by ${Math.round((factor - 1) * 100)} %`
}

/** Issues whose titles are equal apart from ids. */
export interface IssueKind<Issue> {
  /** The issue of this kind with the most runs. */
  issue: Issue
  /** The other issues, those with the most runs first. */
  others: readonly Issue[]
}

type Compared = Pick<IssueSummary, 'title' | 'affectedRuns'>

/** Kinds of issues, those with the most affected runs first. */
export function alikeIssues<Issue extends Compared>(issues: readonly Issue[]): IssueKind<Issue>[] {
  const byRuns = issues.toSorted((a, b) => b.affectedRuns - a.affectedRuns)
  const kinds = Map.groupBy(byRuns, ({ title }) => likeTitle(title))
  return [...kinds.values()].flatMap(([issue, ...others]) => (issue === undefined ? [] : [{ issue, others }]))
}

/**
 * Normalises a title: `No order A-…`, `no order a-…` and `No order …` become equal. Titles already leave out differing
 * ids, but not the characters before them; titles of reported issues leave out nothing.
 */
export function likeTitle(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[\p{L}\p{N}_#.-]*(?:\d|…)[\p{L}\p{N}_#.…-]*/gu, '…')
    .replaceAll(/\s+/g, ' ')
}

/** Adds up counts per day. */
export function addedDays(all: readonly (readonly number[] | undefined)[]): number[] | undefined {
  const known = all.filter((days) => days !== undefined)
  const [first] = known
  return first?.map((_, day) => known.reduce((sum, days) => sum + (days[day] ?? 0), 0))
}
