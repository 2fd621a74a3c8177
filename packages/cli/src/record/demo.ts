import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { randomBytes } from 'node:crypto'
import { demoRuns } from './demo/demo-runs.ts'
import { asOperator, connect, type ServerOptions } from '../engine/options.ts'
import { counted, printable, printJson, printJsonLine, printLine, printTable } from '../engine/output.ts'
import { startProgress } from '../engine/progress.ts'
import { playLive } from './demo/live.ts'
import { askLive, playPeople, type Stage } from './demo/people.ts'
import { DEMO_PROMPT, removeDemo, takePlace, withKey } from './demo/place.ts'
import type { DemoRun } from './demo/story.ts'
import { openRecorder } from './recorder-client.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { failed } from '../engine/stop.ts'

interface Options extends ServerOptions {
  workspace?: string
  seed?: string
  live?: true
  remove?: true
}

export function addDemo(command: Command): void {
  asOperator(command)
    .option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
    .option('--seed <text>', 'up to 100 letters, digits and hyphens; the same seed names the same runs', parseSeed)
    .option('--live', 'then go on: agents that work, fail and ask until Ctrl-C')
    .option('--remove', 'archive the demo and have it deleted')
    .addHelpText(
      'after',
      `
The demo takes an environment of its own, tacho-demo, in which it records runs, approvals, issues, a prompt whose second version
does worse, and policies. Nothing that your agents use changes. Commands use this environment only if you name it.
Needs the role admin. Every call records new runs, unless you repeat a seed. With --live, agents then work until you press Ctrl-C;
now and then one waits for your decision, 10 minutes at most.

--remove archives the environment, the prompt and the policies. The environment is deleted ${LIMITS.environmentDeletionDays} days later, if you have the
role owner.

Examples:
  tacho demo
  tacho demo --seed tour
  tacho demo --live
  tacho demo --remove`,
    )
    .action(demo)
}

async function demo(options: Options): Promise<void> {
  const operator = connect(options)
  const workspace = await findWorkspace(operator, options.workspace)
  if (options.remove) return remove(options, await removeDemo(operator, workspace), workspace.name)
  const place = await takePlace(operator, workspace)
  await withKey(operator, place, async (apiKey) => {
    const [seed, now] = [options.seed ?? randomBytes(4).toString('hex'), Date.now()]
    const stage = { url: operator.url, apiKey, seed, now, operator, place }
    const recorded = await record(stage)
    if (options.live) return live({ ...stage, seed: `${seed}-${now.toString(36)}` }, options.json === true)
    const items = recorded.runs.map(({ runId, about, events }) => ({ runId, about, events: events.length }))
    const { environment } = place
    if (options.json) return printJson({ seed, environment, runs: items, acceptedEvents: recorded.accepted })
    show(items, printable(place.name))
  })
}

async function record(demoStage: Omit<Stage, 'recorder'>): Promise<{ runs: DemoRun[]; accepted: number }> {
  const runs = demoRuns(demoStage.seed, demoStage.now)
  const total = runs.reduce((sum, { events }) => sum + events.length, 0)
  const progress = await startProgress('Demo', total)
  const recorder = openRecorder(demoStage.url, demoStage.apiKey, { onTrouble: progress.note })
  let accepted = 0
  try {
    for (const { runId, events } of runs) {
      const recorded = await recorder.record(events)
      const [first] = recorded.refused
      if (first) throw failed(`The server rejected event ${first.eventId}: ${first.message} (${first.code}).`)
      accepted += recorded.accepted
      progress.update(accepted, runId)
    }
    for (const run of await playPeople({ ...demoStage, recorder })) {
      runs.push(run)
      accepted += run.events.length
    }
  } finally {
    progress.end(`Demo: ${counted(accepted, 'event')}`)
  }
  return { runs, accepted }
}

function show(items: { runId: string; about: string; events: number }[], name: string): void {
  printTable(
    [{ title: 'RUN' }, { title: 'ABOUT' }, { title: 'EVENTS', align: 'right' }],
    items
      .filter(({ about }) => !about.startsWith('prompt version'))
      .map(({ runId, about, events }) => [runId, about, String(events)]),
  )
  printLine()
  printLine(`All of it is in the environment ${name}.`)
  printLine(
    `Two approvals wait for you: \`tacho approvals list -e ${name}\`. Issues: \`tacho issues list -e ${name}\`.`,
  )
  printLine(`Which prompt version did worse: \`tacho prompts results ${DEMO_PROMPT} -e ${name}\`.`)
  printLine(`Look at the runs: \`tacho runs list -e ${name}\`, \`tacho runs show ${items[1]?.runId} -e ${name}\`.`)
  printLine('Remove it again: `tacho demo --remove`.')
}

/** Runs until Ctrl-C. */
async function live(stage: Omit<Stage, 'recorder'>, asJson: boolean): Promise<void> {
  const leaving = new AbortController()
  process.once('SIGINT', () => leaving.abort())
  const { url, apiKey, seed } = stage
  const name = printable(stage.place.name)
  const recorder = openRecorder(url, apiKey, { onTrouble: (line) => process.stderr.write(`${line}\n`) })
  if (!asJson)
    printLine(
      `Agents work until you press Ctrl-C. Watch them: \`tacho runs follow -e ${name}\`, \`tacho approvals watch -e ${name}\`.`,
    )
  await playLive(
    {
      seed,
      record: (events) => recorder.record(events),
      ask: (runId, plan, hash) => askLive(stage, { runId, plan, hash }, leaving.signal),
      onEnd: (run) => (asJson ? printJsonLine(run) : printLine(`${run.runId}  ${run.about}`)),
    },
    leaving.signal,
  )
  process.exitCode = 130
}

function remove(options: Options, removed: Awaited<ReturnType<typeof removeDemo>>, workspace: string): void {
  if (options.json) return printJson({ environment: removed })
  if (removed === null) return printLine(`There is no demo in the workspace ${printable(workspace)}.`)
  printLine(
    removed.deleteAt === null
      ? `The demo is archived as ${printable(removed.name)}. An owner can delete it.`
      : `The demo is archived as ${printable(removed.name)}, and deleted at ${removed.deleteAt}.`,
  )
}

function parseSeed(text: string): string {
  if (/^[0-9A-Za-z-]{1,100}$/.test(text)) return text
  throw new InvalidArgumentError('It must be 1 to 100 letters, digits and hyphens.')
}
