/** Commands on what the demo recorded. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import path from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../server/test/setup/eventually.ts'
import { workDone } from '../../server/test/setup/work-done.ts'
import { ended, runCommand, startServer, startTacho } from './tacho.ts'

const server = await startServer()
after(() => server.stop())
const tour = await runCommand(['demo', '--seed', 'tour', '--json'], server.variables)
const { json, text, refused } = server
const WHERE = ['--environment', 'default/tacho-demo']
// The tests record their own runs in the demo's environment too.
server.variables['TACHO_API_KEY'] = (await text('keys', 'create', ...WHERE, '--name', 'own', '--scopes', 'all')).trim()

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

test('demo shows runs, approvals, issues, a prompt with two versions and policies; the same seed adds nothing', async () => {
  const demo = JSON.parse(tour.stdout) as { runs: unknown[]; acceptedEvents: number }
  assert.equal(demo.runs.length, 16 + 2 * 18 + 4)
  type Issues = { items: { id: string; regressions: number }[] }
  const issues = async () => (await json<Issues>('issues', 'list', ...WHERE)).items
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
    issues: await issues(),
    policies: (await json<{ items: object[] }>('policies', 'list', '-w', 'default')).items,
  })
  const regressed = async () => (await issues()).reduce((sum, { regressions }) => sum + regressions, 0)
  // The last detection is reviewed a moment later, as are failures of runs.
  await eventually(async () => (await regressed()) > 0, 'the regression')
  await workDone(server, 'find_failures', 'review_issue_record')
  const before = await lists()
  assert.deepEqual(
    before.approvals.map(({ status }) => status).toSorted((a, b) => a.localeCompare(b)),
    ['APPROVED', 'PENDING', 'PENDING', 'REJECTED'],
  )
  assert.equal(await regressed(), 1)
  assert.equal(before.policies.length, 2)
  type Results = { items: { version: string; runs: number; failed: number }[] }
  const { items: results } = await json<Results>('prompts', 'results', 'demo-shop-support', ...WHERE)
  assert.deepEqual(
    results.map(({ version, runs, failed }) => [version, failed / runs]),
    [
      ['2', 0.5],
      ['1', 0],
    ],
  )
  const { TACHO_OPERATOR_TOKEN = '', ...variables } = server.variables
  const signedIn = { ...variables, XDG_CONFIG_HOME: path.join(server.directory, 'config') }
  assert.equal((await runCommand(['login', '--url', server.url], signedIn, `${TACHO_OPERATOR_TOKEN}\n`)).code, 0)
  const again = await runCommand(['demo', '--seed', 'tour'], signedIn)
  assert.match(again.stdout, /demo-tour-01 .* 5000\n/)
  assert.match(again.stdout, /tacho prompts results/)
  assert.deepEqual(await lists(), before)
  type Run = { runId: string; eventCount: number; startedAt: string; lastEventAt: string }
  const { items } = await json<{ items: Run[] }>('runs', 'list', ...WHERE, '--all')
  // Occurrences of a run were detected while it ran.
  type Shown = { occurrences: { items: { runId: string; detectedAt: string }[] } }
  for (const { id } of before.issues) {
    for (const { runId, detectedAt } of (await json<Shown>('issues', 'show', id, ...WHERE)).occurrences.items) {
      const run = items.find((each) => each.runId === runId)
      assert.ok(run && run.startedAt <= detectedAt && detectedAt <= run.lastEventAt, `${runId} ${detectedAt}`)
    }
  }
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
  type Sums = { items: { status: string; usage: { totalTokens: number } }[] }
  const sorted: Sums = await json('runs', 'list', ...WHERE, '--sort', 'tokens', '--limit', '5')
  const tokens = sorted.items.map(({ usage }) => usage.totalTokens)
  assert.ok(tokens.length === 5 && tokens.at(-1)! > 0)
  assert.deepEqual(
    tokens,
    tokens.toSorted((a, b) => b - a),
  )
  assert.match(await text('runs', 'list', ...WHERE, '--sort', 'failures'), /WHY +ERRORS +RUN/)
  assert.match(
    (await refused('runs', 'list', ...WHERE, '--sort', 'cost', '--status', 'RUNNING')).stderr,
    /only runs that ended/,
  )
  const charged = (await list('--tool', 'refund_payment', '--min-length', '1s', '--min-cost', '0.0001', '--all')).items
  const everything = (await list('--all')).items
  assert.ok(charged.length > 0 && charged.length < everything.length)
  assert.ok(charged.every(({ tools }) => tools.includes('refund_payment')))
  assert.deepEqual((await list('--tool', 'refund_payment', '--model', 'no-such', '--errors')).items, [])
  assert.deepEqual((await list('--policy', 'no-such', '--approvals')).items, [])
  assert.deepEqual((await list('--search', 'no such text')).items, [])
  assert.deepEqual((await list('--from', '2d', '--to', '2000-01-02')).items, [])
  const none = await server.tacho(['runs', 'list', ...WHERE, '--to', '2000-01-01'])
  assert.deepEqual([none.code, none.stdout], [0, ''])
  assert.match(none.stderr, /^To 2000-01-01 00:00 UTC\.\nNo matching runs\. `tacho demo`/)
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
  assert.match(await text('runs', 'show', 'digits', ...WHERE, '--grep', '900719925474'), /AGENT_STEP +One/)
  assert.doesNotMatch(await text('runs', 'show', 'digits', ...WHERE, '--grep', 'big'), /AGENT_STEP/)
  const raw = await server.tacho(['runs', 'show', 'digits', ...WHERE, '--full', '--json'])
  assert.ok(raw.stdout.includes(payload))
  const document = JSON.parse(raw.stdout) as { run: { runId: string }; events: { eventId: string }[] }
  assert.deepEqual([document.run.runId, document.events[0]?.eventId], ['digits', 'e1'])
  // The beginning of an id is enough if only one run's id starts so.
  assert.match(await text('runs', 'show', 'digit', ...WHERE, '--failed'), /^RUNNING {2}digits$/m)
  const several = await refused('runs', 'show', 'demo-tour-0', ...WHERE)
  assert.equal(several.code, 2)
  assert.match(several.stderr, /"demo-tour-0" is short for several runs: "demo-tour-0\d", .* and 4 more\.$/m)
  for (const verb of ['show', 'follow']) {
    const { code, stderr } = await refused('runs', verb, 'nothing', ...WHERE)
    assert.deepEqual(
      [code, stderr],
      [2, 'tacho: Unknown run "nothing": `tacho runs list` shows those of the environment.\n'],
    )
  }
})

test('show has the end user, the tags and the metadata of a run, a line each', async () => {
  const record = async (runId: string, payload: object) => {
    const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
    const of = { clientId: 'c', agentName: 'a', eventType: 'AGENT_STEP', label: 'x', timestamp: Date.now() }
    const body = JSON.stringify([{ ...of, eventId: runId, runId, payload }])
    await (await fetch(`${server.url}/openapi/v1/events/batch`, { method: 'POST', headers, body })).text()
  }
  await record('labelled', { userId: 'ann\u202e', runTags: ['beta', 'eu'], runMetadata: { task: 'refund', tries: 2 } })
  await record('without-labels', {})
  const shown = await text('runs', 'show', 'labelled', ...WHERE)
  assert.match(shown, /^User {5}ann\\u202e\nTags {5}beta, eu\nMetadata task=refund, tries=2$/m)
  assert.doesNotMatch(await text('runs', 'show', 'without-labels', ...WHERE), /^(User|Tags|Metadata)\b/m)
})

test('show says which tools started and never ended, once the run has ended', async () => {
  const timestamp = Date.now()
  const of = { clientId: 'c', runId: 'lost', agentName: 'a', timestamp }
  const call = (eventType: string, label: string, spanId: string) => {
    const payload = { toolName: label, input: { order: 7 } }
    return { ...of, eventId: `${eventType} ${spanId}`, eventType, label, spanId, payload }
  }
  const record = async (...events: object[]) => {
    const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
    const body = JSON.stringify(events)
    await (await fetch(`${server.url}/openapi/v1/events/batch`, { method: 'POST', headers, body })).text()
  }
  const show = (...args: string[]) => text('runs', 'show', 'lost', ...WHERE, ...args)
  await record(call('TOOL_START', 'lookup', 'a'), call('TOOL_CALL', 'lookup', 'a'), call('TOOL_START', 'refund', 'b'))
  assert.doesNotMatch(await show(), /NEVER ENDED/)
  const payload = { status: 'FAILED' }
  await record({ ...of, eventId: 'end', eventType: 'SESSION_OUTCOME', label: 'failed', payload })
  const lost = /^✕ \S+Z {2}TOOL_START +NEVER ENDED refund \{"order":7\}$/m
  assert.match(await show(), lost)
  assert.match(await show(), /^Why {6}refund never ended: it may have taken effect\.$/m)
  assert.match(await show('--failed'), lost)
  const starts = await show('--type', 'TOOL_START')
  assert.match(starts, lost)
  // The call ended, but the filter hides its end.
  assert.match(starts, /^ {2}\S+Z {2}TOOL_START +lookup \{"order":7\}$/m)
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
  assert.match(stdout, /COMPLETED +live-[0-9a-f]{32} +Imported agent/)
  assert.equal(stderr, '')
})

test('usage shows correct totals', async () => {
  const report = await json<{ items: { events: number }[] }>('usage', ...WHERE, '--from', '3d')
  assert.ok(report.items.length > 0)
  assert.match(await text('usage', ...WHERE, '--from', '3d'), /^Total .*\d$/m)
  assert.match(await text('usage', ...WHERE, '--from', '3d', '--by', 'model'), /^gpt\S+ +\d[\d.,]*\S* +\$\d[\d.]*/m)
  assert.match(
    await text('usage', ...WHERE, '--from', '60d', '--by', 'agent'),
    /^AGENT +RUNS +COMPLETED +FAILED +CANCELLED/,
  )
  assert.match(await text('usage', ...WHERE, '--from', '60d'), /^Total .*\d$/m)
  const long = await refused('usage', ...WHERE, '--from', '60d', '--by', 'hour')
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
  const { code, stdout } = await runCommand(['doctor'], { TACHO_URL: server.url })
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

test('a closed output ends the command silently', async () => {
  const child = startTacho(['runs', 'show', 'demo-tour-01', ...WHERE], server.variables)
  const errors = child.stderr ? child.stderr.setEncoding('utf8').toArray() : Promise.resolve([])
  await once(child.stdout ?? child, 'data')
  child.stdout?.destroy()
  const [code] = (await once(child, 'close')) as [number]
  assert.deepEqual([code, await errors], [0, []])
})

test('a failed run says why in the list and when shown; --stack shows its causes and its stack', async () => {
  const stack = 'TimeoutError: no answer\n    at getOrder (orders.ts:7:3)'
  const causes = [{ type: 'Error', message: 'connect ECONNREFUSED' }]
  const exception = { type: 'TimeoutError', message: 'no answer', stack, causes }
  const decision = { action: 'BLOCK', toolName: 'refund', policyIds: ['refund-limit'], reason: 'ask ada', input: 9 }
  const payloads = { POLICY_DECISION: decision, SESSION_OUTCOME: { status: 'FAILED', exception } }
  const events = Object.entries(payloads).map(([eventType, payload], index) => {
    const ids = { eventId: `crash-${index}`, clientId: 'c', runId: 'crashed' }
    return { ...ids, agentName: 'a', eventType, label: 'step', timestamp: Date.now() + index, payload }
  })
  const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
  const sent = { method: 'POST', headers, body: JSON.stringify(events) }
  assert.equal((await fetch(`${server.url}/openapi/v1/events/batch`, sent)).status, 200)
  assert.match(await text('runs', 'list', '--search', 'crashed', ...WHERE), /FAILED +TimeoutError: no answer +crashed /)
  const shown = await text('runs', 'show', 'crashed', ...WHERE)
  assert.match(
    shown,
    /^Why {6}TimeoutError: no answer\n {9}in getOrder \(orders\.ts\)\n {9}because Error: connect ECONNREFUSED\n {9}`tacho runs show crashed --stack`/m,
  )
  assert.match(shown, /BLOCK refund by refund-limit: ask ada 9$/m)
  assert.match(shown, /FAILED: TimeoutError: no answer, because Error: connect ECONNREFUSED$/m)
  const whole = await text('runs', 'show', 'crashed', '--stack', ...WHERE)
  assert.equal(whole.trim(), `TimeoutError: no answer\n  because Error: connect ECONNREFUSED\n${stack}`)
})

test('a cancelled run says why in the list, when shown, and with --stack', async () => {
  const stack = 'CancelledError\n  File "night.py", line 7'
  const exception = { type: 'CancelledError', message: 'Its task was cancelled.', stack }
  const of = { eventId: 'stop', clientId: 'c', runId: 'stopped-run', agentName: 'a', timestamp: Date.now() }
  const payload = { status: 'CANCELLED', exception }
  const event = { ...of, eventType: 'SESSION_OUTCOME', label: 'cancelled', payload }
  const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
  const sent = { method: 'POST', headers, body: JSON.stringify([event]) }
  assert.equal((await fetch(`${server.url}/openapi/v1/events/batch`, sent)).status, 200)
  const line = 'CancelledError: Its task was cancelled.'
  assert.match(
    await text('runs', 'list', '--search', 'stopped-run', ...WHERE),
    new RegExp(`CANCELLED +${line} +stopped-run`),
  )
  const shown = await text('runs', 'show', 'stopped-run', ...WHERE)
  assert.match(shown, new RegExp(`^Why {6}${line}\n {9}in night.py\n {9}\`tacho runs show stopped-run --stack\``, 'm'))
  const whole = await text('runs', 'show', 'stopped-run', '--stack', ...WHERE)
  assert.equal(whole.trim(), `${line}\n${stack}`)
})

test('runs gaps says which clients lose events, how many and why', async () => {
  const none = await runCommand(['runs', 'gaps', ...WHERE], server.variables)
  assert.match(none.stdout + none.stderr, /No event .* is known to be missing/)
  const sent = (agentName: string, n: string, more: object = {}) => {
    const ids = { eventId: `${agentName} ${n}`, clientId: 'web-7', runId: `lossy ${agentName}`, agentId: agentName, n }
    return { ...ids, agentName, eventType: 'AGENT_STEP', label: 'step', timestamp: Date.now(), ...more }
  }
  const dropped = { queue_full: [4, Date.now()] }
  const events = [sent('lossy', 'abcde1'), sent('lossy', 'abcde7.', { dropped }), sent('other', 'abcde2.')]
  const headers = { 'x-api-key': server.variables['TACHO_API_KEY'] ?? '', 'content-type': 'application/json' }
  const post = { method: 'POST', headers, body: JSON.stringify(events) }
  assert.equal((await fetch(`${server.url}/openapi/v1/events/batch`, post)).status, 200)
  const why = 'the client dropped 4 at .* because its queue was full, no reason is known for'
  assert.match(await text('runs', 'gaps', ...WHERE), new RegExp(`^web-7 +6 +9 +2 +lossy other +${why} 2$`, 'm'))
  const ofAgent = await text('runs', 'gaps', '--agent', 'lossy', ...WHERE)
  assert.match(ofAgent, new RegExp(`^web-7 +5 +7 +1 +lossy lossy +${why} 1$`, 'm'))
  type Gaps = { items: { name: string; missing: number; dropped: number }[]; hasMore: boolean; lookedTo: null }
  const { items, hasMore, lookedTo } = await json<Gaps>('runs', 'gaps', '--by', 'agent', '--limit', '1', ...WHERE)
  assert.deepEqual(
    [items.map((item) => [item.name, item.dropped, item.missing]), hasMore, lookedTo],
    [[['lossy', 4, 1]], true, null],
  )
})
