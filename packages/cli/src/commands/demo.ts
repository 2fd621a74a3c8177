import type { PUBLIC_PREFIX, ROUTES } from '@tacho/contract/routes.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { randomBytes } from 'node:crypto'
import { demoRuns } from '../demo/runs.ts'
import { withJson, withUrl, type OutputOptions } from '../settings/options.ts'
import { counted, printJson, printJsonLine, printLine, printTable } from '../terminal/output.ts'
import { startProgress } from '../terminal/progress.ts'
import { playLive } from '../demo/live.ts'
import { askLive, playPeople } from '../demo/people.ts'
import { operatorClient } from '../calls/operator-client.ts'
import { openRecorder } from '../calls/recorder-client.ts'
import { readAccount, readApiKey, readUrl } from '../settings/credentials.ts'
import { chosenProfile } from '../settings/profiles.ts'
import { failed } from '../stop.ts'

interface Options extends OutputOptions {
  url?: string
  seed?: string
  live?: true
}

const RUNS: `${typeof PUBLIC_PREFIX}${(typeof ROUTES.listRuns)['path']}` = '/openapi/v1/runs'

export function addDemo(command: Command): void {
  withJson(withUrl(command))
    .option('--seed <text>', 'up to 100 letters, digits and hyphens; the same seed names the same runs', parseSeed)
    .option('--live', 'then go on: agents that work, fail and ask until Ctrl-C')
    .addHelpText(
      'after',
      `
Every call records new runs, unless you repeat a seed. The API key in TACHO_API_KEY needs the scope events:write. With
an operator token too (tacho login for this address, or TACHO_OPERATOR_TOKEN), the demo also has a prompt with two versions,
policies, decided approvals and an issue that came back. With --live, agents then work until you press Ctrl-C; now and then one waits for your decision, 10 minutes at
most, for which the key needs policies:read too.

Examples:
  tacho demo
  tacho demo --seed tour
  tacho demo --live`,
    )
    .action(demo)
}

/** Until Ctrl-C. */
async function live(stage: { url: string; apiKey: string; seed: string }, asJson: boolean): Promise<void> {
  const leaving = new AbortController()
  process.once('SIGINT', () => leaving.abort())
  const { url, apiKey, seed } = stage
  const recorder = openRecorder(url, apiKey, { onTrouble: (line) => process.stderr.write(`${line}\n`) })
  if (!asJson)
    printLine('Agents work until you press Ctrl-C. Watch them: `tacho runs follow`, `tacho approvals watch`.')
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

/** Null without an operator token for this address. */
function operatorOf(url: string) {
  const isGiven = process.env['TACHO_OPERATOR_TOKEN'] !== undefined || chosenProfile()?.profile.url === url
  return isGiven ? operatorClient(url, readAccount({ url }).token) : null
}

function parseSeed(text: string): string {
  if (/^[0-9A-Za-z-]{1,100}$/.test(text)) return text
  throw new InvalidArgumentError('It must be 1 to 100 letters, digits and hyphens.')
}

async function demo(options: Options): Promise<void> {
  const [url, apiKey] = [readUrl(options.url), readApiKey()]
  const seed = options.seed ?? randomBytes(4).toString('hex')
  const now = Date.now()
  const runs = demoRuns(seed, now)
  const total = runs.reduce((sum, { events }) => sum + events.length, 0)
  const progress = await startProgress('Demo', total)
  const recorder = openRecorder(url, apiKey, { onTrouble: progress.note })
  let accepted = 0
  try {
    for (const { runId, events } of runs) {
      const recorded = await recorder.record(events)
      const [first] = recorded.refused
      if (first) throw failed(`The server rejected event ${first.eventId}: ${first.message} (${first.code}).`)
      accepted += recorded.accepted
      progress.update(accepted, runId)
    }
    const stage = { url, apiKey, seed, now, recorder, operator: operatorOf(url) }
    for (const run of await playPeople(stage)) {
      runs.push(run)
      accepted += run.events.length
    }
  } finally {
    progress.end(`Demo: ${counted(accepted, 'event')}`)
  }
  const items = runs.map(({ runId, about, events }) => ({ runId, about, events: events.length }))
  if (options.json && !options.live) return printJson({ seed, runs: items, acceptedEvents: accepted })
  if (options.live) return live({ url, apiKey, seed: `${seed}-${now.toString(36)}` }, options.json === true)
  printTable(
    [{ title: 'RUN' }, { title: 'ABOUT' }, { title: 'EVENTS', align: 'right' }],
    items
      .filter(({ about }) => !about.startsWith('prompt version'))
      .map(({ runId, about, events }) => [runId, about, String(events)]),
  )
  printLine()
  printLine('Two approvals wait for you: `tacho approvals list`. Issues: `tacho issues list`.')
  printLine(
    operatorOf(url) === null
      ? `Run \`tacho login --url ${url}\` and repeat \`--seed ${seed}\` for prompts, policies and decided approvals.`
      : 'Which prompt version did worse: `tacho prompts results shop-support`.',
  )
  printLine(`Look at them: \`tacho runs list\`, \`tacho runs show ${items[1]?.runId}\`.`)
  printLine(`With the API key: GET ${url}${RUNS}`)
}
