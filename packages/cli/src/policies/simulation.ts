/** `tacho policies simulate`: starts a simulation, waits for it, and prints the result. */
import { flowSentence } from '@tacho/contract/engine/format.ts'
import type { Simulation, SimulationResult } from '@tacho/contract/policies/simulation.ts'
import type { PolicyAction } from '@tacho/contract/policies/runtime-config.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Input, OperatorClient } from '../engine/operator-client.ts'
import { counted, printable, printLine, printTable, spokenNumber, strong } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { failed } from '../engine/stop.ts'

const POLL_MS = 200

/** Resolves with the finished simulation. Ctrl-C cancels it, and so does reaching the time `until`. */
export async function runSimulation(
  client: OperatorClient,
  environmentId: string,
  body: NonNullable<Input<'createSimulation'>['body']>,
  until = Number.POSITIVE_INFINITY,
): Promise<Simulation> {
  let simulation = await client.createSimulation({ params: { environmentId }, body })
  const params = { environmentId, simulationId: simulation.id }
  const cancel = (): void => void client.cancelSimulation({ params }).catch(() => undefined)
  process.once('SIGINT', cancel)
  const progress = await startProgress('Simulation', null)
  try {
    while (simulation.endedAt === null) {
      await sleep(POLL_MS)
      if (Date.now() >= until) {
        cancel()
        throw failed('The comparison takes longer than a deployment waits.')
      }
      simulation = await client.readSimulation({ params })
      const of = simulation.total === null ? '' : ` of ${spokenNumber(simulation.total)}`
      progress.update(simulation.scanned, `${spokenNumber(simulation.scanned)}${of} calls`)
    }
  } finally {
    process.removeListener('SIGINT', cancel)
    progress.end('Simulation')
  }
  if (simulation.status === 'DONE') return simulation
  const reason = simulation.error === null ? '' : `: ${simulation.error}`
  throw failed(`The simulation ended as ${simulation.status}${reason}.`)
}

const DOES: Record<PolicyAction, string> = {
  ALLOW: 'would match',
  WARN: 'would warn about',
  REQUIRE_APPROVAL: 'would ask a person about',
  BLOCK: 'would block',
}

export function printResult({ action, severity, onError }: Simulation, result: SimulationResult): void {
  const { calls, hits, matched, failures, runs } = result
  const share = calls === 0 ? '' : ` (${((hits / calls) * 100).toFixed(1)} %)`
  const what = `${spokenNumber(hits)} of ${counted(calls, 'recorded tool call')}${share}, in ${counted(runs, 'run')}`
  for (const { message } of result.warnings) printLine(`Warning: ${printable(message)}.`)
  printLine(strong(`It ${DOES[action]} ${what}.`))
  printLine(`Calls from ${result.from} to ${result.to}.`)
  if (result.askedPerDay !== undefined) printLine(askedLine(result.askedPerDay, result.askedSince))
  if (result.past) printPast(result.past)
  if (failures > 0) printFailures(result, matched, onError === null ? `severity ${severity}` : `onError ${onError}`)
  printStates(result)
  for (const { message, runId } of result.largest ?? [])
    printLine(`  ${printable(message)}, in run ${printable(runId)}`)
  printTools(result)
  printRuns(result)
  printApprovals(result)
}

/** Approval requests per day. Older servers do not report since when. */
function askedLine(perDay: number, since = 'the first of these calls'): string {
  return `It would ask ${counted(perDay, 'time')} a day, on average since ${since}.`
}

type Past = NonNullable<SimulationResult['past']>

/** Prints how complete the data behind the answer is. */
function printPast({ unknown, tools, labelledTools, unlabelled }: Past): void {
  if (unknown > 0) {
    printLine(`${counted(unknown, 'call')} unknown: what they depend on is masked, shortened or not recorded.`)
  }
  const share = tools === 0 ? 0 : Math.floor((labelledTools / tools) * 100)
  const names = unlabelled.slice(0, 5).map(printable).join(', ')
  const others = names === '' ? '' : ` Without labels: ${names}${unlabelled.length > 5 ? ', …' : ''}.`
  printLine(`Labels cover ${share} % of the tools (${labelledTools} of ${tools}).${others}`)
}

export function printFlow(simulation: Simulation, result: SimulationResult): void {
  const flow = result.flow ?? { calls: 0, reached: 0, unknown: 0 }
  for (const { message } of result.warnings) printLine(`Warning: ${printable(message)}.`)
  printLine(strong(printable(flowSentence(simulation, flow))))
  printLine(`Calls from ${result.from} to ${result.to}.`)
  if (result.past) printPast({ ...result.past, unknown: flow.unknown })
  printRuns(result)
}

function printFailures({ failures, hits, failureReasons }: SimulationResult, matched: number, rule: string): void {
  const counts = hits > matched ? 'count as matches' : 'do not count as matches'
  printLine(`The condition could not be evaluated ${counted(failures, 'time')}; with ${rule} these ${counts}:`)
  for (const { message, count } of failureReasons) printLine(`  ${spokenNumber(count)} × ${printable(message)}`)
}

const STATES = [
  ['ran', 'ran'],
  ['held', 'asked a person, did not run'],
  ['blocked', 'blocked'],
  ['neverRan', 'never ran'],
] as const

/** Prints the outcomes of the calls; nothing if all of them ran. */
function printStates({ states }: SimulationResult): void {
  if (states === undefined || STATES.every(([state]) => state === 'ran' || states[state].calls === 0)) return
  printLine()
  const rows = STATES.filter(([state]) => states[state].calls > 0)
  printTable(
    [{ title: 'CALLS THAT' }, { title: 'HITS', align: 'right' }, { title: 'CALLS', align: 'right' }],
    rows.map(([state, name]) => [name, spokenNumber(states[state].hits), spokenNumber(states[state].calls)]),
  )
}

function printTools({ tools, moreTools }: SimulationResult): void {
  const hit = tools.filter(({ hits }) => hits > 0)
  if (hit.length === 0) return
  printLine()
  printTable(
    [{ title: 'TOOL' }, { title: 'HITS', align: 'right' }, { title: 'CALLS', align: 'right' }],
    hit.map(({ toolName, hits, calls }) => [toolName, spokenNumber(hits), spokenNumber(calls)]),
  )
  if (moreTools && hit.length === tools.length) printLine('Not all tools are shown.')
}

function printRuns({ hitRuns, runs }: SimulationResult): void {
  if (hitRuns.length === 0) return
  printLine()
  const shown = hitRuns.slice(0, 10)
  printTable(
    [{ title: 'FIRST HIT', as: 'time' }, { title: 'RUN' }, { title: 'TOOL' }, { title: 'EVENT', isOptional: true }],
    shown.map(({ at, runId, toolName, eventId }) => [at, runId, toolName, eventId]),
  )
  if (runs > shown.length) printLine(`And ${counted(runs - shown.length, 'more run')}; --json lists up to 100.`)
}

function printApprovals({ approvals: { hits, others } }: SimulationResult): void {
  const all = [hits, others].flatMap(({ approved, rejected, expired }) => [approved, rejected, expired])
  if (all.every((count) => count === 0)) return
  printLine()
  printLine('What people decided on these calls:')
  const right = { align: 'right' as const }
  printTable(
    [{ title: '' }, { title: 'APPROVED', ...right }, { title: 'REJECTED', ...right }, { title: 'EXPIRED', ...right }],
    [['hit by the policy', hits] as const, ['not hit', others] as const].map(
      ([name, { approved, rejected, expired }]) => [name, ...[approved, rejected, expired].map(spokenNumber)],
    ),
  )
}
