/** `tacho policies init`: writes a ready set of policies with its examples into a folder. It deploys nothing. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { POLICY_SETS } from '@tacho/contract/engine/words.ts'
import { ROOT } from '@tacho/server/program/program.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printJson, printLine, printTable, spokenNumber } from '../engine/output.ts'
import { wrongUsage } from '../engine/stop.ts'
import { findPlace } from '../tenants/tenants.ts'
import { manifestOf } from './apply/read-manifest.ts'
import { simulatedLabels } from './simulate.ts'
import { runSimulation } from './simulation.ts'

interface InitOptions extends EnvironmentOptions {
  directory: string
  days: number
}

export async function initPolicies(set: string | undefined, options: InitOptions): Promise<void> {
  if (set === undefined) {
    if (options.json) return printJson({ items: Object.entries(POLICY_SETS).map(([name, about]) => ({ name, about })) })
    return printTable([{ title: 'SET' }, { title: 'WHAT IT DOES' }], Object.entries(POLICY_SETS))
  }
  if (!Object.hasOwn(POLICY_SETS, set)) {
    throw wrongUsage(`Unknown set ${JSON.stringify(set)}: choose from ${Object.keys(POLICY_SETS).join(', ')}.`)
  }
  const files = [`${set}.yaml`, `${set}.test.yaml`].map((name) => path.join(options.directory, name))
  const taken = files.find((file) => existsSync(file))
  if (taken !== undefined)
    throw wrongUsage(
      `${printable(taken)} exists; nothing was written. Remove it, or choose another folder with --directory.`,
    )
  // An unknown environment fails here, before anything is written.
  const place = options.environment === undefined ? null : await placeOf(options)
  mkdirSync(options.directory, { recursive: true })
  for (const file of files) {
    writeFileSync(file, readFileSync(path.join(ROOT, 'examples/policies', path.basename(file))), { flag: 'wx' })
  }
  const [file = '', examples = ''] = files
  const simulated = place === null ? [] : await simulatedSet(file, place, options.days)
  if (options.json) return printJson({ set, files, simulated })
  printLine(`Wrote ${printable(file)} and ${printable(examples)}. Nothing is deployed.`)
  for (const { policy, hits, calls, runs, unknown } of simulated) {
    const result = `${spokenNumber(hits)} of ${counted(calls, 'call')}, in ${counted(runs, 'run')}`
    printLine(`  ${printable(policy)} would have acted on ${result}${unknown > 0 ? `; ${unknown} unknown` : ''}.`)
  }
  printLine('Next: put the names of your tools into it, and then')
  printLine(`  tacho policies test ${printable(examples)} -f ${printable(file)}`)
  printLine(`  tacho apply -f ${printable(file)} --dry-run`)
  printLine(
    'It deploys nothing until the file names an environment under `environments`, with its policies: its labels go there too.',
  )
}

type SimulationPlace = Awaited<ReturnType<typeof placeOf>>

async function placeOf(options: InitOptions) {
  const client = connect(options)
  const { environment } = await findPlace(client, options.environment, '--environment')
  return { client, environmentId: environment.id }
}

/** Simulates each policy on recent calls, before anything is deployed. */
async function simulatedSet(file: string, { client, environmentId }: SimulationPlace, days: number) {
  const { policies, labels } = await manifestOf(file)
  const simulated = []
  for (const [policy, { condition, severity, action, onError }] of policies) {
    const body = { condition, severity, action, onError, ...simulatedLabels(labels), days }
    const { result } = await runSimulation(client, environmentId, body)
    if (result === null) continue
    const { hits, calls, runs, past } = result
    simulated.push({ policy, hits, calls, runs, unknown: past?.unknown ?? 0 })
  }
  return simulated
}
