/** `tacho experiment` with a real server, a scripted model, and an agent that runs once for each run. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startModelServer, type ModelServer } from '../../../sdk-integrations/src/model-server.ts'
import { API_KEY, ended, startServer, startTacho, type TestServer } from '../tacho.ts'

const AGENT = fileURLToPath(new URL('chat-agent.ts', import.meta.url))
const CASES = 8
const MANIFEST = `
workspace: default
prompts: { greeting: { content: 'Be brief.' } }
policies:
  none: { condition: tool.name == "send_certificate", severity: HIGH, action: BLOCK }
environments:
  development: { prompts: [greeting], policies: [none] }
`

let server: TestServer
let folder: string
let model: ModelServer
before(async () => {
  server = await startServer()
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-experiment-'))
  const manifest = path.join(folder, 'tacho.yaml')
  writeFileSync(manifest, MANIFEST)
  await server.text('apply', '-f', manifest, '--yes')
  writeFileSync(path.join(folder, 'kind.md'), 'Be kind.')
  await server.text('prompts', 'push', 'greeting', '--file', path.join(folder, 'kind.md'))
  for (let number = 1; number <= CASES; number++) await post(`case-${number}`, failedRun(number))
  const [input, ...rest] = failedRun(20)
  await post('open', [input as Posted, ...rest.slice(0, -1)])
  await post(
    'unguarded',
    failedRun(21).filter(({ eventType }) => eventType !== 'TOOL_START'),
  )
  await post('other', [{ eventType: 'USER_INPUT', payload: { text: 'Hello' } }, FAILED])
  model = await startModelServer(({ body }) => {
    const messages = body['messages'] as { role: string; content?: string }[]
    const number = Number(/case (\d+)/.exec(String(messages[1]?.content))?.[1])
    if (messages.at(-1)?.role === 'tool') return { text: number % 2 === 0 ? 'Refunded.' : 'I cannot do that.' }
    const isOther = number === 3
    return { toolCalls: [{ name: 'refund', input: isOther ? { case: number, twice: true } : { case: number } }] }
  })
})
after(async () => {
  await model.close()
  await server.stop()
  rmSync(folder, { recursive: true })
})

interface Posted {
  eventType: string
  payload: Record<string, unknown>
}

const FAILED: Posted = { eventType: 'SESSION_OUTCOME', payload: { status: 'FAILED' } }

function failedRun(number: number): Posted[] {
  const messages = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: `case ${number}` },
  ]
  const call = { toolName: 'refund', toolCallId: 'c', input: { case: number } }
  const usage = { promptTokens: 2_000, completionTokens: 1_000 }
  const asked = { model: 'gpt-5', messages, output: { role: 'assistant', content: null }, usage, latency: 500 }
  return [
    { eventType: 'USER_INPUT', payload: { text: `case ${number}` } },
    { eventType: 'LLM_CALL', payload: asked },
    { eventType: 'TOOL_START', payload: call },
    { eventType: 'TOOL_CALL', payload: { ...call, startEventId: `case-${number}-2`, output: 'done' } },
    { eventType: 'LLM_CALL', payload: { ...asked, output: { role: 'assistant', content: 'I cannot do that.' } } },
    { eventType: 'SCORE', payload: { name: 'politeness', value: 0 } },
    FAILED,
  ]
}

async function post(runId: string, events: readonly Posted[]): Promise<void> {
  const common = { clientId: 'c', runId, agentName: 'Desk' }
  const begun = Date.now() - 60_000
  const body = events.map((event, at) => {
    return { eventId: `${runId}-${at}`, label: event.eventType, timestamp: begun + at * 1_000, ...common, ...event }
  })
  const headers = { 'content-type': 'application/json', 'x-api-key': API_KEY }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, init)
  assert.equal(((await reply.json()) as { accepted: number }).accepted, events.length)
}

interface Report {
  spent: number
  page: string
  sums: {
    kept: number
    verdicts: Record<string, number>
    completedAfter: { part: number; whole: number; low: number; high: number }
    differences: { name: string; runs: number; before: number; after: number; mean: number; margin: number | null }[]
  }
  items: {
    run: string
    verdict: string
    way: { step: number; sentence: string } | null
    before: { outcome: string; tokens: number; scores: object }
    after: { outcome: string; tokens: number; scores: object }
    measure: number | null
    recorded: string | null
  }[]
  left: string[]
  leftOut: { run: string; why: string }[]
}

const FILTER = 'status=FAILED tool=refund since=7d'
const log = (name: string) => path.join(folder, `${name}.log`)
const lines = (name: string) => (existsSync(log(name)) ? readFileSync(log(name), 'utf8').trimEnd().split('\n') : [])

function start(name: string, options: readonly string[], agent: readonly string[] = []) {
  const words = ['experiment', 'run', '--runs', FILTER, '--name', name, '-o', folder, '--prompt', 'greeting@2']
  const variables = { ...server.variables, OPENAI_BASE_URL: `${model.url}/v1` }
  return startTacho([...words, ...options, '--', process.execPath, AGENT, log(name), ...agent], variables)
}

async function run(name: string, options: readonly string[] = [], agent: readonly string[] = []) {
  const { code, stdout, stderr } = await ended(start(name, [...options, '--json'], agent))
  assert.ok(stdout.startsWith('{'), stderr)
  return { code, stderr, report: JSON.parse(stdout) as Report }
}

test('failed runs are replayed with another prompt: what got better, what went another way, and what no replay can have', async () => {
  const measure = path.join(folder, 'measure.mjs')
  writeFileSync(measure, 'export default ({ before, after }) => before.timeline.length - after.timeline.length + 2')
  const asked = model.requests.length
  const { code, stderr, report } = await run('prompt', ['--measure', measure, '--record'])
  assert.equal(code, 0, stderr)
  assert.match(
    stderr,
    /^8 runs in [^\n]*prompt\.\n1 run cannot be replayed:\n {2}unguarded: step 3: refund is not guarded/,
  )
  assert.deepEqual(report.left, [])
  const verdictOf = new Map(report.items.map(({ run, verdict }) => [run, verdict]))
  assert.deepEqual([verdictOf.get('case-2'), verdictOf.get('case-3')], ['better', 'another way'])
  assert.deepEqual(report.sums.verdicts, { better: 7, worse: 0, same: 0, 'another way': 1 })
  const departed = report.items.find(({ run }) => run === 'case-3')
  assert.equal(departed?.way?.step, 3)
  assert.match(String(departed?.way?.sentence), /input\.twice: the tape has nothing, now it is true/)
  const solved = report.items.find(({ run }) => run === 'case-2')
  assert.partialDeepStrictEqual(solved, {
    before: { outcome: 'FAILED', tokens: 6_000, scores: { politeness: 0 } },
    after: { outcome: 'COMPLETED', tokens: 60, scores: { politeness: 1 } },
    measure: 2,
  })
  const completed = report.sums.completedAfter
  assert.deepEqual([completed.part, completed.whole], [4, 7])
  assert.ok(completed.low > 0.2 && completed.high < 0.9)
  const tokens = report.sums.differences.find(({ name }) => name === 'tokens')
  assert.deepEqual([tokens?.runs, tokens?.before, tokens?.after, tokens?.margin], [7, 6_000, 60, 0])
  const systems = model.requests.slice(asked).map(({ body }) => JSON.stringify((body['messages'] as object[])[0]))
  assert.deepEqual([...new Set(systems)], ['{"role":"system","content":"Be kind."}'])
  assert.ok(lines('prompt').every((line) => !line.startsWith('executed')))
  // The replay is a run that names its original, the experiment, and the version of the prompt.
  const { items } = await server.json<{ items: { runId: string; metadata: object; promptVersionIds: string[] }[] }>(
    'runs',
    'list',
    '--metadata',
    'replayOf=case-2',
  )
  assert.equal(items[0]?.runId, solved?.recorded)
  assert.partialDeepStrictEqual(items[0]?.metadata, { experiment: 'prompt' })
  const versions = await server.json<{ items: { version: string; runs: number }[] }>('prompts', 'results', 'greeting')
  assert.equal(versions.items.find(({ version }) => version === '2')?.runs, 8)
  const page = readFileSync(report.page, 'utf8')
  assert.match(page, /<td>case-2<\/td><td>FAILED → COMPLETED<\/td>/)
  assert.ok(!/<script|src=|href=/.test(page))
  const table = await server.text('experiment', 'show', path.join(folder, 'prompt'))
  assert.match(table, /better +case-2 +FAILED → COMPLETED +same +3 +\$0\.025 → \$0\.000239 +6,000 → 60/)
  assert.match(table, /Completed before: 0 of 7 .*; now: 4 of 7 \(57 %, likely 25 to 84 %\)\./)
})

test('an experiment that is killed goes on with the runs that have no result, and finished ones are not run again', async () => {
  const killed = start('killed', ['--parallel', '2'], ['400'])
  const results = path.join(folder, 'killed', 'log.jsonl')
  const done = () =>
    (existsSync(results) ? readFileSync(results, 'utf8').split('\n') : []).flatMap((line) => {
      const matched = /^\{"result":\{"run":"(case-\d+)"/.exec(line)
      return matched ? [String(matched[1])] : []
    })
  while (done().length < 2) await sleep(20)
  killed.kill('SIGKILL')
  await ended(killed)
  const before = done()
  assert.ok(before.length < CASES, 'it was killed before its end')
  // An incomplete line, as after a crash.
  writeFileSync(results, `${readFileSync(results, 'utf8')}{"result":{"run":"case-`)
  const { code, stderr, report } = await run('killed', [], ['400'])
  assert.equal(code, 0, stderr)
  assert.match(stderr, new RegExp(`of which ${before.length} have a result already`))
  assert.equal(report.items.length, CASES)
  for (const name of before)
    assert.equal(lines('killed').filter((line) => line === `begun ${name.replace('-', ' ')}`).length, 1, name)
  const other = await ended(start('killed', ['--read-only', 'refund', '--json'], ['400']))
  assert.match(other.stderr, /has another experiment: readOnly differs/)
})

test('money ends an experiment, also if nobody knows what a model costs; more of it goes on', async () => {
  const poor = await run('money', ['--max-cost', '0.0003', '--parallel', '1'])
  assert.equal(poor.code, 3, poor.stderr)
  assert.match(poor.stderr, /\d runs without a result: --max-cost was reached: \$0\.0/)
  assert.ok(poor.report.spent >= 0.0003 && poor.report.spent < 0.001, String(poor.report.spent))
  const rich = await run('money', ['--max-cost', '1'])
  assert.deepEqual([rich.code, rich.report.left], [0, []], rich.stderr)
  const strange = await run('strange', ['--max-cost', '1'], ['0', 'our-own-model'])
  assert.equal(strange.code, 3)
  assert.match(strange.stderr, /the cost of our-own-model is not known, so --max-cost cannot hold/)
})

test('a command that records nothing ends the experiment, and its filters are those of the list of runs', async () => {
  const words = (filter: string, name: string) => {
    const options = ['--runs', filter, '--name', name, '-o', folder]
    return ['experiment', 'run', ...options, '--', process.execPath, '-e', 'throw new Error("no agent")']
  }
  const silent = await ended(startTacho(words(FILTER, 'silent'), server.variables))
  assert.equal(silent.code, 3)
  assert.match(
    silent.stderr,
    /8 runs without a result: the command recorded nothing \(exit code 1\): .*Error: no agent/,
  )
  assert.match(
    (await server.refused(...words('colour=red', 'wrong'))).stderr,
    /The filter "colour=red" cannot be read: unknown option '--colour/,
  )
  assert.match(
    (await server.refused(...words('status=FAILED limit=5', 'wrong'))).stderr,
    /has a limit, which is a flag of its own: --limit 5/,
  )
  assert.match((await server.refused(...words('status=BROKEN', 'wrong'))).stderr, /must be one of RUNNING, COMPLETED/)
  assert.match((await server.refused(...words('agent="Nobody here" errors', 'none'))).stderr, /No run matches/)
  // Nothing was replayed, so the command fails, and stores nothing that it could continue.
  const none = await ended(startTacho(words('search=unguarded', 'nothing'), server.variables))
  assert.deepEqual([none.code, none.stdout], [1, ''])
  assert.match(
    none.stderr,
    /^tacho: None of 1 run can be replayed, so there is nothing to compare:\n {2}unguarded: step 3: refund is not guarded/,
  )
  assert.equal(existsSync(path.join(folder, 'nothing', 'experiment.json')), false)
})

test('a dataset grows from filters, judgement and files; each change is a version, which tests and experiments take', async () => {
  const place = ['--in', path.join(folder, 'datasets')]
  const dataset = (...words: string[]) => server.text('dataset', ...words, ...place)
  assert.equal(await dataset('create', 'desk'), 'desk@1: 0 tapes (+0, −0).\n')
  assert.equal(
    await dataset('add', 'desk', '--runs', `${FILTER} search=case-`, '--limit', '2'),
    'desk@2: 2 tapes (+2, −0).\n',
  )
  await server.text('scores', 'give', 'case-1', 'quality', 'no')
  await server.text('scores', 'give', 'case-2', 'quality', 'yes')
  assert.equal(await dataset('add', 'desk', '--judged', 'bad'), 'desk@3: 3 tapes (+1, −0).\n')
  await server.text('tape', 'case-2', '-o', path.join(folder, 'case-2.jsonl'))
  assert.equal(await dataset('add', 'desk', path.join(folder, 'case-2.jsonl')), 'desk@4: 4 tapes (+1, −0).\n')
  assert.equal(await dataset('add', 'desk', '--judged', 'bad'), 'desk@4: 4 tapes (+1, −0).\n')
  const left = await server.tacho(['dataset', 'add', 'desk', '--runs', 'search=unguarded', ...place])
  assert.deepEqual([left.code, left.stdout.includes('not added: unguarded: step 3: refund is not guarded')], [3, true])
  assert.equal(await dataset('remove', 'desk', 'case-2'), 'desk@5: 3 tapes (+0, −1).\n')
  const runsOf = async (name: string) =>
    (await server.json<{ items: { run: string }[] }>('dataset', 'show', name, ...place)).items.map(({ run }) => run)
  assert.ok((await runsOf('desk@4')).includes('case-2') && !(await runsOf('desk')).includes('case-2'))
  assert.match(await dataset('list'), /desk +5 +3/)
  assert.match((await server.refused('dataset', 'show', 'desk@9', ...place)).stderr, /desk has versions 1 to 5, not 9/)
  const variables = { ...server.variables, OPENAI_BASE_URL: `${model.url}/v1` }
  const agent = ['--', process.execPath, AGENT, log('dataset')]
  const named = ['--dataset', 'desk@4', ...place]
  const words = ['experiment', 'run', ...named, '--name', 'dataset', '-o', folder, '--json', ...agent]
  const { items } = JSON.parse((await ended(startTacho(words, variables))).stdout) as Report
  assert.deepEqual(items.map(({ run: name }) => name).sort(), (await runsOf('desk@4')).sort())
  const tested = await ended(startTacho(['test', ...named, '--json', ...agent], variables))
  assert.equal((JSON.parse(tested.stdout) as { items: unknown[] }).items.length, 4)
})
