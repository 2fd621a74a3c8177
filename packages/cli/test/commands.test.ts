import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { ended, OPERATOR_TOKEN, runTacho, serveFrom, startServer, startTacho, type Ended } from './tacho.ts'

const server = await startServer()
after(() => server.stop())
/** Recorded once for most tests. */
const tour = await runTacho(['demo', '--seed', 'tour', '--json'], server.variables)

/** Runs a command that must succeed, and returns its JSON. */
async function json<Value>(...args: string[]): Promise<Value> {
  const { code, stdout, stderr } = await server.tacho([...args, '--json'])
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as Value
}

/** Runs a command that must succeed, and returns its text. */
async function text(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.tacho(args)
  assert.equal(code, 0, stderr)
  return stdout
}

async function refused(...args: string[]): Promise<Ended> {
  const result = await server.tacho(args)
  assert.equal(result.stdout, '')
  // A slow command also tells its progress.
  assert.match(result.stderr, /^(\w+: [\d,]+ lines\n)*tacho: .*\n$/)
  return result
}

const WHERE = ['--environment', 'default/development']

test('workspaces and environments are created and listed; --if-not-exists accepts existing ones', async () => {
  assert.match(await text('workspaces', 'create', 'acme'), /^Workspace acme created \(/)
  const again = await refused('workspaces', 'create', 'acme')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /\(conflict, request [0-9a-f-]{36}\)/)
  const workspace = await json<{ id: string }>('workspaces', 'create', 'acme', '--if-not-exists')
  const { items } = await json<{ items: { id: string; name: string }[] }>('workspaces', 'list')
  assert.equal(items.find(({ name }) => name === 'acme')?.id, workspace.id)

  assert.match(await text('environments', 'create', 'prod/eu', '-w', 'acme'), /^Environment acme\/prod\/eu created/)
  assert.match(await text('environments', 'create', 'prod/eu', '-w', workspace.id, '--if-not-exists'), /already exists/)
  assert.match(await text('environments', 'list'), /^acme\/prod\/eu +[0-9a-f-]{36}/m)
  // Names with a slash work too.
  await json('keys', 'list', '--environment', 'acme/prod/eu')
})

test('workspaces and environments are renamed, archived, restored, and an archived environment is deleted', async () => {
  await text('workspaces', 'create', 'life')
  await text('environments', 'create', 'old', '-w', 'life')
  assert.match(
    await text('environments', 'rename', 'life/old', 'staging'),
    /^Environment life\/old is now called staging/,
  )
  const early = await refused('environments', 'delete', 'life/staging', '--yes')
  assert.match(early.stderr, /archive it first/)
  assert.match(await text('environments', 'archive', 'life/staging'), /^Environment life\/staging is archived/)
  assert.doesNotMatch(await text('environments', 'list'), /life\/staging/)
  const unasked = await server.tacho(['environments', 'delete', 'life/staging'])
  assert.deepEqual([unasked.code, unasked.stderr], [1, 'Nothing was changed; add --yes to delete the environment.\n'])
  assert.match(await text('environments', 'delete', 'life/staging', '--yes'), /is deleted at 2.*\nTo keep it: tacho /)
  assert.match(await text('environments', 'list', '--archived'), /^life\/staging +\S+ +\S+ +2\S+ +2\S+$/m)
  assert.match(await text('environments', 'restore', 'life/staging'), /is in use again/)
  assert.match(await text('environments', 'list', '--archived'), /^life\/staging +\S+ +\S+ +no +never$/m)
  assert.match(await text('workspaces', 'rename', 'life', 'after'), /^Workspace life is now called after/)
  await text('workspaces', 'archive', 'after')
  assert.doesNotMatch(await text('workspaces', 'list'), /after/)
  assert.match(await text('workspaces', 'list', '--archived'), /^after +\S+ +\S+ +2/m)
  await text('workspaces', 'restore', 'after')
  assert.match(await text('workspaces', 'list'), /^after /m)
})

test('agents are listed, renamed, archived and restored', async () => {
  type Agents = { items: { id: string; agentId: string | null; name: string; reportedName: string }[] }
  const list = async (...flags: string[]) => (await json<Agents>('agents', 'list', ...flags, ...WHERE)).items
  const [first] = await list()
  assert.ok(first?.agentId)
  const renamed = await text('agents', 'rename', first.agentId, 'Called so', ...WHERE)
  assert.match(renamed, /is now called Called so/)
  const names = (await list()).filter(({ id }) => id === first.id).map(({ name, reportedName }) => [name, reportedName])
  assert.deepEqual(names, [['Called so', first.reportedName]])
  assert.match(await text('runs', 'list', '--agent', 'Called so', ...WHERE), /Called so/)
  assert.match(await text('agents', 'archive', 'Called so', ...WHERE), /^Agent Called so is archived/)
  assert.equal(
    (await list()).some(({ id }) => id === first.id),
    false,
  )
  assert.match(await text('agents', 'list', '--archived', ...WHERE), /^Called so .* 2\S+$/m)
  await text('agents', 'restore', first.id, ...WHERE)
  await text('agents', 'rename', first.id, first.reportedName, ...WHERE)
  assert.equal((await list()).find(({ id }) => id === first.id)?.name, first.reportedName)
  assert.match((await refused('agents', 'archive', 'no-such-agent', ...WHERE)).stderr, /Unknown agent "no-such-agent"/)
})

test('archived prompts and policies are listed on demand', async () => {
  await text('workspaces', 'create', 'shelf')
  for (const [noun, file, rest] of [
    ['prompts', 'old.md', []],
    ['policies', 'old.cel', ['--severity', 'LOW', '--action', 'WARN']],
  ] as const) {
    const source = path.join(server.dataDir, file)
    writeFileSync(source, 'true')
    await text(noun, 'create', 'old', '--file', source, '-w', 'shelf', ...rest)
    await text(noun, 'archive', 'old', '-w', 'shelf')
    assert.doesNotMatch(await text(noun, 'list', '-w', 'shelf'), /^old/m)
    assert.match(await text(noun, 'list', '-w', 'shelf', '--archived'), /^old +\S+ +archived/m)
  }
})

test('with several workspaces, one must be given', async () => {
  await text('workspaces', 'create', 'other', '--if-not-exists')
  const which = await refused('environments', 'create', 'x')
  assert.equal(which.code, 2)
  assert.match(which.stderr, /More than one workspace exists\. Set --workspace: choose from "default"/)
  const unknown = await refused('runs', 'list', '--environment', 'default/nowhere')
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /Unknown environment "default\/nowhere"/)
})

test('a key is the only output on stdout, works, and can be revoked', async () => {
  const made = await server.tacho([
    'keys',
    'create',
    ...WHERE,
    '--name',
    'demo',
    '--scopes',
    'events:write',
    '--expires',
    '90d',
  ])
  assert.match(made.stdout, /^tacho_[0-9a-f]{16}_[0-9a-f]{64}\n$/)
  assert.match(made.stderr, /with events:write, until 2/)
  const key = made.stdout.trim()
  const demo = await runTacho(['demo', '--seed', 'key-test', '--json'], { ...server.variables, TACHO_API_KEY: key })
  assert.equal(demo.code, 0, demo.stderr)
  const id = key.split('_')[1] ?? ''
  assert.match(await text('keys', 'revoke', id, '--yes', ...WHERE), /was revoked at/)
  assert.match(await text('keys', 'list', ...WHERE), new RegExp(`^${id} +demo +revoked`, 'm'))
  const late = await runTacho(['demo'], { ...server.variables, TACHO_API_KEY: key })
  assert.equal(late.code, 1)
  assert.match(late.stderr, /\(unauthenticated, request/)
  assert.ok(!late.stderr.includes(key))
})

test('a key in JSON has its scopes, rate and expiry', async () => {
  const line = ['keys', 'create', ...WHERE, '--name', 'k', '--scopes', 'all', '--rate', '7', '--expires', '2099-01-01']
  const key = await json<Record<string, unknown>>(...line)
  assert.deepEqual(key['scopes'], ['events:write', 'config:read', 'policies:read', 'usage:read'])
  assert.deepEqual([key['requestsPerSecond'], key['expiresAt']], [7, '2099-01-01T00:00:00.000Z'])
})

test('demo shows runs, approvals, issues, a prompt with two versions and policies; the same seed adds nothing', async () => {
  const demo = JSON.parse(tour.stdout) as { runs: unknown[]; acceptedEvents: number }
  assert.equal(demo.runs.length, 12 + 2 * 18 + 4)
  const lists = async () => ({
    approvals: (
      await json<{ items: { status: string; runId: string }[] }>(
        'approvals',
        'list',
        ...WHERE,
        '--status',
        'ALL',
        '--all',
      )
    ).items.filter(({ runId }) => runId.startsWith('demo-tour-')),
    issues: (await json<{ items: { regressions: number }[] }>('issues', 'list', ...WHERE)).items,
    policies: (await json<{ items: object[] }>('policies', 'list', '-w', 'default')).items,
  })
  const regressed = async () => (await lists()).issues.reduce((sum, { regressions }) => sum + regressions, 0)
  // The last detection is reviewed a moment later.
  for (let tries = 0; tries < 300 && (await regressed()) === 0; tries++) await sleep(100)
  const before = await lists()
  assert.deepEqual(
    before.approvals.map(({ status }) => status).toSorted((a, b) => a.localeCompare(b)),
    ['APPROVED', 'PENDING', 'PENDING', 'REJECTED'],
  )
  assert.equal(await regressed(), 1)
  assert.equal(before.policies.length, 2)
  type Results = { items: { version: string; runs: number; failed: number }[] }
  const { items: results } = await json<Results>('prompts', 'results', 'shop-support', ...WHERE)
  assert.deepEqual(
    results.map(({ version, runs, failed }) => [version, failed / runs]),
    [
      ['2', 0.5],
      ['1', 0],
    ],
  )
  const { TACHO_OPERATOR_TOKEN = '', ...variables } = server.variables
  const signedIn = { ...variables, XDG_CONFIG_HOME: path.join(server.directory, 'config') }
  assert.equal((await runTacho(['login', '--url', server.url], signedIn, `${TACHO_OPERATOR_TOKEN}\n`)).code, 0)
  const again = await runTacho(['demo', '--seed', 'tour'], signedIn)
  assert.match(again.stdout, /demo-tour-01 .* 5000\n/)
  assert.match(again.stdout, /tacho prompts results/)
  assert.deepEqual(await lists(), before)
  const { items } = await json<{ items: { runId: string; eventCount: number }[] }>('runs', 'list', ...WHERE, '--all')
  const counts = items.filter(({ runId }) => runId.startsWith('demo-tour-')).map(({ eventCount }) => eventCount)
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    demo.acceptedEvents,
  )
})

test('runs are listed by agent, session, status and number', async () => {
  const list = async (
    ...args: string[]
  ): Promise<{ items: { runId: string; status: string; tools: string[] }[]; hasMore: boolean }> =>
    json('runs', 'list', ...WHERE, ...args)
  assert.deepEqual((await list('--limit', '3')).items.length, 3)
  assert.equal((await list('--limit', '3')).hasMore, true)
  const session = await list('--session', 'demo-tour-returning-customer')
  assert.deepEqual([session.items.length, session.hasMore], [3, false])
  const failed = await list('--status', 'failed', '--all')
  assert.ok(failed.items.length > 0 && failed.items.every(({ status }) => status === 'FAILED'))
  for (const agent of ['Stock keeper', 'stock-keeper']) {
    const { items } = await list('--agent', agent, '--all')
    assert.equal(items.filter(({ runId }) => runId.startsWith('demo-tour-')).length, 2)
  }
  const found = (await list('--search', 'demo-tour-0', '--all')).items
  assert.equal(found.length, 9)
  assert.ok(found.every(({ runId }) => runId.startsWith('demo-tour-0')))
  assert.equal(
    (await list('--search', 'demo-tour-returning-customer', '--status', 'completed', '--all')).hasMore,
    false,
  )
  const charged = (await list('--tool', 'refund_payment', '--min-length', '1s', '--min-cost', '0.0001', '--all')).items
  const everything = (await list('--all')).items
  assert.ok(charged.length > 0 && charged.length < everything.length)
  assert.ok(charged.every(({ tools }) => tools.includes('refund_payment')))
  assert.equal(
    await text('runs', 'list', ...WHERE, '--search', 'demo-tour-01', '--jq', '.items[].runId'),
    'demo-tour-01\n',
  )
  const program = await refused('runs', 'list', ...WHERE, '--jq', '.items[')
  assert.deepEqual([program.code, program.stderr.startsWith('tacho: --jq: jq: error: syntax error')], [2, true])
  assert.deepEqual((await list('--tool', 'refund_payment', '--model', 'no-such', '--errors')).items, [])
  assert.deepEqual((await list('--policy', 'no-such', '--approvals')).items, [])
  assert.deepEqual((await list('--search', 'no such text')).items, [])
  assert.deepEqual((await list('--from', '2d', '--to', '2000-01-02')).items, [])
  const none = await server.tacho(['runs', 'list', ...WHERE, '--to', '2000-01-01'])
  assert.deepEqual([none.code, none.stdout], [0, ''])
  assert.match(none.stderr, /^No matching runs\. `tacho demo`/)
})

test('a saved view is made, renamed, used and removed', async () => {
  const views = (...args: string[]) => ['runs', 'views', ...args, ...WHERE]
  const filter = '{"agent":"stock-keeper","status":"COMPLETED"}'
  const made = await json<{ name: string; lastHours: number; columns: string[] }>(
    ...views('create', 'Stock', '--filter', filter, '--last-hours', '8784', '--columns', 'run,cost'),
  )
  assert.deepEqual([made.name, made.lastHours, made.columns], ['Stock', 8784, ['run', 'cost']])
  assert.match(await text(...views('list')), /Stock +agent=stock-keeper status=COMPLETED +8784 +run, cost/)
  assert.equal((await json<{ name: string }>(...views('rename', 'Stock', 'Stock runs'))).name, 'Stock runs')
  const list = async (...args: string[]) =>
    (await json<{ items: { agent: { name: string } }[] }>('runs', 'list', '--view', 'Stock runs', ...args, ...WHERE))
      .items
  const items = await list()
  assert.ok(items.length > 0 && items.every(({ agent }) => agent.name === 'Stock keeper'))
  assert.deepEqual(await list('--agent', 'no such agent'), [])
  const unknown = await refused('runs', 'list', '--view', 'Stock', ...WHERE)
  assert.deepEqual(unknown.stderr, 'tacho: Unknown view "Stock": `tacho runs views list` shows all.\n')
  assert.equal((await refused(...views('create', 'No', '--filter', '[]'))).code, 2)
  await refused(...views('create', 'No', '--filter', '{"colour":"red"}'))
  await json(...views('remove', 'Stock runs'))
  assert.deepEqual((await json<{ items: object[] }>(...views('list'))).items, [])
})

test('a run is shown with its timeline, payloads to the last digit', async () => {
  const payload = '{ "big":9007199254740993, "one":1.0, "text":"\\u001b[2J" }'
  const event = { eventId: 'e1', clientId: 'c', runId: 'digits', agentName: 'a', eventType: 'AGENT_STEP', label: 'One' }
  const body = `[${JSON.stringify({ ...event, timestamp: Date.now() }).slice(0, -1)},"payload":${payload}}]`
  const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
  await (await fetch(`${server.url}/openapi/v1/events/batch`, { method: 'POST', headers, body })).text()

  const shown = await text('runs', 'show', 'digits', ...WHERE)
  assert.match(shown, /^RUNNING {2}digits$/m)
  assert.match(shown, /^ {2}\d{4}-\S+Z {2}AGENT_STEP +One: \\u001b\[2J$/m)
  const withPayloads = await text('runs', 'show', 'digits', ...WHERE, '--full')
  assert.match(withPayloads, /^ +"big": 9007199254740993,\n +"one": 1\.0,\n +"text": "\\u001b\[2J"$/m)
  const raw = await server.tacho(['runs', 'show', 'digits', ...WHERE, '--full', '--json'])
  assert.ok(raw.stdout.includes(payload))
  const document = JSON.parse(raw.stdout) as { run: { runId: string }; events: { eventId: string }[] }
  assert.deepEqual([document.run.runId, document.events[0]?.eventId], ['digits', 'e1'])
  // The beginning of an id is enough, if only one run has it.
  assert.match(await text('runs', 'show', 'digit', ...WHERE, '--failed'), /^RUNNING {2}digits$/m)
  const several = await refused('runs', 'show', 'demo-tour-0', ...WHERE)
  assert.equal(several.code, 2)
  assert.match(several.stderr, /"demo-tour-0" is short for several runs: "demo-tour-0\d", .* and 4 more\.$/m)
  for (const verb of ['show', 'follow']) {
    const { code, stderr } = await refused('runs', verb, 'nothing', ...WHERE)
    assert.deepEqual([code, stderr], [2, 'tacho: Unknown run "nothing": `tacho runs list` shows all.\n'])
  }
})

test('show filters events by type and by text in the label', async () => {
  type Shown = { events: { eventType: string; label: string }[] }
  const show = async (...args: string[]) =>
    (await json<Shown>('runs', 'show', 'demo-tour-01', ...WHERE, ...args)).events
  const all = await show()
  const [first] = all
  assert.ok(first)
  const { eventType, label } = first
  assert.deepEqual(
    await show('--type', eventType),
    all.filter((row) => row.eventType === eventType),
  )
  const search = label.slice(1).toUpperCase()
  assert.deepEqual(
    await show('--search', search),
    all.filter((row) => row.label.toUpperCase().includes(search)),
  )
  assert.deepEqual(await show('--type', 'NOTHING'), [])
})

test('follow prints an ended run to its end, in arrival order', async () => {
  const { code, stdout } = await server.tacho(['runs', 'follow', 'demo-tour-02', ...WHERE, '--json'])
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { eventId: string; eventType: string })
  assert.equal(code, 0)
  assert.equal(events.at(-1)?.eventType, 'SESSION_OUTCOME')
  assert.deepEqual(
    events.map(({ eventId }) => eventId),
    events.map((_, index) => `demo-tour-02-${index + 1}`),
  )
})

test('follow prints new runs, and an interrupt ends it silently', async () => {
  const child = startTacho(['runs', 'follow', ...WHERE], server.variables)
  const end = ended(child)
  let seen = ''
  child.stdout?.on('data', (chunk: Buffer) => (seen += chunk.toString()))
  // Runs from before the first poll do not count: record more until one appears.
  for (let round = 0; !seen.includes('live-') && round < 20; round++) {
    const line = JSON.stringify({ round, messages: [{ role: 'user', content: 'x' }] })
    await server.tacho(['import', '-', '--run-prefix', 'live-'], line)
  }
  child.kill('SIGINT')
  const { stdout, stderr } = await end
  assert.match(stdout, /STALLED +live-[0-9a-f]{32} +Imported agent/)
  assert.equal(stderr, '')
})

test('usage shows correct totals', async () => {
  const report = await json<{ items: { events: number }[] }>('usage', ...WHERE, '--from', '3d')
  assert.ok(report.items.length > 0)
  assert.match(await text('usage', ...WHERE, '--from', '3d'), /^Total .*\d$/m)
  assert.match(await text('usage', ...WHERE, '--from', '3d', '--by', 'model'), /^gpt\S+ +\d[\d.,]*\S* +\d[\d.]*/m)
  assert.match(
    await text('usage', ...WHERE, '--from', '60d', '--by', 'agent'),
    /^AGENT +RUNS +COMPLETED +FAILED +CANCELLED/,
  )
  const long = await refused('usage', ...WHERE, '--from', '60d')
  assert.deepEqual([long.code, /31 days/.test(long.stderr)], [1, true])
})

test('doctor checks the installation and traces single events', async () => {
  const report = await json<{ ok: boolean; checks: { name: string; ok: boolean }[] }>('doctor')
  assert.deepEqual([report.ok, report.checks[0]], [true, { ...report.checks[0], name: 'server', ok: true }])
  assert.match(await text('doctor'), /^✔ server +http/m)
  const about = ['doctor', '--run', 'demo-tour-02', ...WHERE, '--event']
  assert.match(
    await text(...about, 'demo-tour-02-13'),
    /is stored .* number 13 .*\n.*\n.*\nIt is the outcome that closed its run\./,
  )
  const unknown = await server.tacho([...about, 'nothing'])
  assert.deepEqual([unknown.code, /has no record of event nothing/.test(unknown.stdout)], [1, true])
  assert.equal((await refused('doctor', '--run', 'x')).code, 2)
})

test('doctor without a token still reports whether the server answers', async () => {
  const { code, stdout } = await runTacho(['doctor'], { TACHO_URL: server.url })
  assert.equal(code, 1)
  assert.match(stdout, /^✔ server .*\n✖ operator token +No operator token/)
})

test('doctor explains a rejected event', async () => {
  const event = {
    eventId: 'long',
    clientId: 'c',
    runId: 'refusals',
    agentName: 'a',
    eventType: 'X',
    label: 'x'.repeat(256),
    timestamp: Date.now(),
  }
  const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
  const body = JSON.stringify([event])
  await (await fetch(`${server.url}/openapi/v1/events/batch`, { method: 'POST', headers, body })).text()
  const { code, stdout } = await server.tacho(['doctor', '--run', 'refusals', '--event', 'long', ...WHERE])
  assert.equal(code, 1)
  assert.match(stdout, /was rejected at .*\n.*\(too_long\)\.\n/)
})

test('an export continues after an interruption, and its import is exported again byte for byte', async () => {
  const whole = path.join(server.directory, 'whole.jsonl')
  const { counts, lines } = await json<{ counts: Record<string, number>; lines: number }>(
    'export',
    ...WHERE,
    '-o',
    whole,
  )
  const content = readFileSync(whole, 'utf8')
  assert.equal(content.split('\n').filter((line) => !/^\{"type":"(mark|end)"|^$/.test(line)).length, lines)
  assert.ok((counts['event'] ?? 0) > 100)
  assert.equal(
    (await server.tacho(['export', ...WHERE, '--agent', 'no-such-agent'])).stdout.includes('"type":"run"'),
    false,
  )
  assert.equal((await refused('export', ...WHERE, '-o', whole)).code, 1)

  // Interrupted within a line, after a mark; and compressed, before the first mark.
  const mark = content.indexOf('{"type":"mark"')
  assert.ok(mark > 0)
  const resumed = path.join(server.directory, 'resumed.jsonl')
  writeFileSync(`${resumed}.partial`, content.slice(0, content.indexOf('\n', mark) + 20))
  assert.match((await refused('export', ...WHERE, '-o', resumed)).stderr, /continue it with --resume/)
  await text('export', ...WHERE, '-o', resumed, '--resume')
  assert.equal(readFileSync(resumed, 'utf8') === content, true)
  const packed = path.join(server.directory, 'packed.jsonl.zst')
  writeFileSync(`${packed}.partial`, zstdCompressSync(content).subarray(0, 5_000))
  await text('export', ...WHERE, '-o', packed, '--resume')
  assert.equal(zstdDecompressSync(readFileSync(packed)).toString() === content, true)

  await text('environments', 'create', 'archive', '-w', 'default')
  const into = ['--environment', 'default/archive']
  const damaged = path.join(server.directory, 'damaged.jsonl')
  writeFileSync(damaged, content.replace('"type":"run"', '"type":"run" '))
  assert.match((await refused('restore-export', damaged, ...into)).stderr, /damaged before or in line \d+/)
  writeFileSync(damaged, content.slice(0, -100))
  assert.equal((await refused('restore-export', damaged, ...into)).code, 1)
  assert.match((await refused('restore-export', packed, ...into)).stderr, /not empty/)
  assert.match(await text('restore-export', packed, ...into, '--resume'), /lines written into default\/archive/)
  const again = (await server.tacho(['export', ...into])).stdout
  const comparable = (some: string) =>
    // The names and the checksums that contain them; a pending approval may have expired since.
    some.split('\n').filter((line) => !/^\{"type":"(export|mark|end|approval)"/.test(line))
  assert.deepEqual(comparable(again), comparable(content))
  assert.match(await text('restore-export', resumed, ...into, '--resume'), /^0 lines written/)
})

test('a run is written into one HTML file, which is never overwritten', async () => {
  const file = path.join(server.directory, 'run.html')
  const { bytes } = await json<{ bytes: number }>('runs', 'export', 'demo-tour-01', '--html', file, ...WHERE)
  const page = readFileSync(file, 'utf8')
  assert.equal(Buffer.byteLength(page), bytes)
  assert.match(page, /^<!doctype html>[^]*demo-tour-01[^]*Payloads are not included[^]*<\/html>\n$/)
  const whole = path.join(server.directory, 'whole.html')
  assert.match(
    await text('runs', 'export', 'demo-tour-01', '--html', whole, '--payloads', ...WHERE),
    /^Run written to /,
  )
  assert.match(readFileSync(whole, 'utf8'), /<pre/)
  assert.match((await refused('runs', 'export', 'demo-tour-01', '--html', file, ...WHERE)).stderr, /already exists/)
  const none = path.join(server.directory, 'none.html')
  assert.match((await refused('runs', 'export', 'nothing', '--html', none, ...WHERE)).stderr, /Unknown run/)
  assert.equal(existsSync(none), false)
})

test('events and runs are written as Parquet', async () => {
  const file = path.join(server.directory, 'events.parquet')
  const { table, bytes } = await json<{ table: string; bytes: number }>(
    'export',
    '--parquet',
    'events',
    '-o',
    file,
    ...WHERE,
  )
  assert.equal(table, 'events')
  const written = readFileSync(file)
  assert.deepEqual(
    [written.length, written.toString('latin1', 0, 4), written.toString('latin1', bytes - 4)],
    [bytes, 'PAR1', 'PAR1'],
  )
  const refusal = async (...args: string[]) => (await refused('export', '--parquet', ...args, ...WHERE)).stderr
  assert.match(await refusal('events', '-o', file), /already exists/)
  assert.match(await refusal('runs', '-o', `${file}.2`, '--resume'), /cannot continue a Parquet file/)
})

test('a backup can be restored to another data directory; neither is ever overwritten', async () => {
  const file = path.join(server.directory, 'backup.db')
  const { bytes } = await json<{ bytes: number }>('backup', file)
  assert.equal(readFileSync(file).length, bytes)
  assert.equal((await refused('backup', file)).code, 1)
  assert.equal((await refused('backup', path.join(server.directory, 'no', 'such'))).code, 1)

  const dataDir = path.join(server.directory, 'restored')
  assert.match(await text('restore', file, '--data-dir', dataDir), /is now the store in/)
  assert.equal((await refused('restore', file, '--data-dir', dataDir)).code, 1)
  assert.match(
    (await refused('restore', file, '--data-dir', server.dataDir, '--replace')).stderr,
    /open in another process/,
  )
  const replaced = await json<{ replaced: string }>('restore', file, '--data-dir', dataDir, '--replace')
  assert.ok(existsSync(replaced.replaced))

  const copy = await serveFrom(dataDir)
  try {
    const { code, stderr } = await runTacho(['runs', 'show', 'demo-tour-02', ...WHERE], {
      ...server.variables,
      TACHO_URL: copy.url,
    })
    assert.equal(code, 0, stderr)
  } finally {
    await copy.stop()
  }
  const lost = await json<{ operatorToken: string; revokedOperatorTokens: number }>(
    'recover',
    '--data-dir',
    dataDir,
    '--revoke-old',
  )
  assert.equal(lost.revokedOperatorTokens, 1)
  assert.match(await text('recover', '--data-dir', dataDir, '--api-key-for', 'default/development'), /API key +tacho_/)
  const again = await serveFrom(dataDir)
  try {
    const ask = (token: string): Promise<Ended> =>
      runTacho(['workspaces', 'list'], { TACHO_URL: again.url, TACHO_OPERATOR_TOKEN: token })
    assert.deepEqual([(await ask(lost.operatorToken)).code, (await ask(OPERATOR_TOKEN)).code], [0, 1])
  } finally {
    await again.stop()
  }
})

test('a token can come from a file', async () => {
  const file = path.join(server.directory, 'token')
  writeFileSync(file, `${OPERATOR_TOKEN}\n`)
  const { code } = await runTacho(['workspaces', 'list', '--url', server.url, '--token-file', file])
  assert.equal(code, 0)
})

test('a closed output ends the command silently', async () => {
  const child = startTacho(['runs', 'show', 'demo-tour-01', ...WHERE], server.variables)
  const errors = child.stderr ? child.stderr.setEncoding('utf8').toArray() : Promise.resolve([])
  await once(child.stdout ?? child, 'data')
  child.stdout?.destroy()
  const [code] = (await once(child, 'close')) as [number]
  assert.deepEqual([code, await errors], [0, []])
})
