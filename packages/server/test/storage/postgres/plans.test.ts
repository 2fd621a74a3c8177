/**
 * PostgreSQL must find the rows of every hot statement by index and read no more than requested, with any table
 * statistics. One tenant is large and many are small, because that is where plans go wrong.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { advanceErasure } from '../../../src/domain/data/erasure.ts'
import { parseSearchQuery } from '../../../src/domain/runs/search-query.ts'
import { openPostgresStorage } from '../../../src/storage/postgres/open.ts'
import type { RunCriteria } from '../../../src/storage/runs/runs.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { NESTED_PLANS } from '../../setup/citus-skips.ts'
import { testDatabases, type TestDatabase, type TestDatabases } from '../../setup/postgres-server.ts'
import { EVENTS_OF_RUN, fillLargeTenant, LONG_RUN, OPERATOR_ROWS, RUNS, SCALE } from './large-tenant.ts'
import { recordTransactions } from './rules.ts'
import { newFailure } from '../suite/issues/issue-sample.ts'
import { newErasure, type Subject } from '../suite/data/erasure-sample.ts'
import { append, event, HOUR, llmCall, newId, NOON, runOf, scored } from '../suite/sample.ts'
import { operatorScore } from '../suite/runs/scores.ts'

const TABLES = [
  'events',
  'envelopes',
  'runs',
  'agents',
  'models',
  'usage_hours',
  'latency_hours',
  'version_runs',
  'version_latencies',
  'scores',
  'run_scores',
  'tool_hours',
  'audit_log',
  'work',
  'issues',
  'issue_affected',
  'issue_records',
  'webhook_deliveries',
  'removed_runs',
  'erased_keys',
  'payload_blocks',
  'search_runs',
  'search_entries',
]
/** The tables that take longest to fill. */
const LARGE = ['events', 'search_entries', 'runs', 'envelopes']
/** Tables with few rows at any time: each row is deleted when its work is done. */
const UNDER_WAY = ['removed_runs', 'work']
/** Matches a statement that reads or writes one of these tables. */
const USED = new RegExp(`\\b(?:FROM|JOIN|INTO|UPDATE)\\s+(?:${TABLES.join('|')})\\b`)

/** A prefix of the ids of a hundred runs. */
const SOME_RUNS = SCALE > 10 ? 'run 1000' : 'run 100'
const FILLING = { timeout: SCALE * 60_000 }
/** Rows of one table that one statement may read here: pages have 50 rows, batches 60 events. */
const MOST_ROWS = 500
/** Blocks that one statement may read, indexes included. */
const MOST_PAGES = 2_000
/** Blocks that one written row may take: a run is an entry of each of its indexes. */
const PAGES_WRITTEN = 20

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Index Cond'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

describe('plans', { skip: NESTED_PLANS }, () => {
  const sent = recordTransactions()
  let databases: TestDatabases
  let database: TestDatabase
  let client: pg.Client
  let storage: Storage
  const env = newId()
  const workspace = newId()
  const webhook = newId()
  const place = { time: NOON + 30, seq: 30 }
  /** Names of prepared statements, by their text. */
  const prepared = new Map<string, string>()
  /** Columns of each index, in its order. */
  const indexes = new Map<string, string[]>()
  /** Each check erases another run. Not the first one, which has more events than its row counts. */
  let erased = 1
  let removed = 0

  before(async () => {
    databases = await testDatabases()
    database = await databases.create()
    storage = await openPostgresStorage({ url: database.url })
    client = new pg.Client(database.url)
    await client.connect()
    // Connects like the engine, except for the statistics collector, which must know nothing at first.
    const settings = sent.flat().find(({ text }) => text.includes("set_config('search_path'"))
    await client.query(settings?.text ?? '')
    for (const table of TABLES) await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
    // Unlogged tables fill in a sixth less time, and have the same plans.
    for (const table of LARGE) await client.query(`ALTER TABLE ${table} SET UNLOGGED`)
    await append(storage, env, ...['first', 'long', 'run 1000'].map((runId) => event({ agentId: 'a', runId })))
    const { rows } = await client.query<{ name: string; columns: string[] }>(
      `SELECT i.indexrelid::regclass::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
        FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indexrelid GROUP BY 1`,
    )
    for (const { name, columns } of rows) indexes.set(name, columns)
    await prepareEarly()
    await fillLargeTenant({ client, storage, env, workspace, webhook })
  }, FILLING)
  after(async () => {
    await client.end()
    await storage.close()
    await database.drop()
    await databases.close()
  })

  /**
   * Plans the statements while the tables are almost empty, like the first node that uses them. PostgreSQL keeps such
   * plans until it analyses the tables: about a minute later, if they grow.
   */
  async function prepareEarly() {
    for (const [index, { text, values }] of (await statements(useAsClient)).entries()) {
      if (prepared.has(text)) continue
      const name = `early_${index}`
      prepared.set(text, name)
      await client.query(`SET plan_cache_mode = force_generic_plan; PREPARE ${name} AS ${text}`)
      await client.query(`EXPLAIN EXECUTE ${name}(${values.map(literal).join(', ')}); RESET plan_cache_mode`)
    }
  }

  async function search() {
    const parsed = parseSearchQuery('needle')
    assert.ok(parsed.ok)
    const span = { clauses: parsed.clauses, from: NOON - 10 * 24 * HOUR, to: NOON + HOUR, limit: 50 }
    await storage.searchEvents(env, { ...span, after: null })
    await storage.searchEvents(env, { ...span, after: { time: NOON + 3, run: 1_010_007, tie: 3 } })
    // The statement of the job that indexes runs for the search.
    await storage.readUnindexed(env)
    await storage.readSearchSettings(env)
    await storage.markOlderRuns(env)
  }

  async function useAsOperator() {
    const middle = `${Math.floor(OPERATOR_ROWS / 2)
      .toString(16)
      .padStart(8, '0')}-0000-7000-8000-000000000000`
    const filters = [
      {},
      { action: 'action 7' },
      { actorId: 'actor 7' },
      { targetId: 'target 7' },
      { targetKind: 'kind 7' },
    ] as const
    for (const filter of filters) {
      for (const after of [null, middle]) {
        for (const workspaceId of [workspace, null]) await storage.listAudit(workspaceId, { limit: 50, after }, filter)
      }
    }
    for (const filter of [
      {},
      { state: 'OPEN' },
      { assignee: 'person 2' },
      { assigned: 'true' },
      { assigned: 'false' },
      { from: NOON, to: NOON + 5_000 },
      { state: 'OPEN', from: NOON },
    ] as const) {
      for (const after of [null, { lastSeen: NOON + OPERATOR_ROWS / 2, id: middle }]) {
        await storage.listIssues(env, filter, { limit: 50, after })
      }
    }
    for (const filter of [{}, { status: 'FAILED' }, { recordKind: 'RECOVERY' }] as const) {
      for (const after of [null, middle]) await storage.listIssueRecords(env, filter, { limit: 50, after })
    }
    for (const filter of [{}, { status: 'FAILED' }, { status: 'PENDING' }] as const) {
      for (const after of [null, middle]) await storage.listDeliveries(env, webhook, filter, { limit: 50, after })
    }
    await storage.startDelivery({ environmentId: env, id: middle, owner: 'nobody' })
    const run = await runOf(storage, env, 'run 1000')
    await storage.readFailures(env, run.id, { from: NOON, to: NOON + 5_000 })
    await storage.recordFailures(env, 'run 1000', [newFailure({ eventId: 'a' }), newFailure({ eventId: 'b' })], NOON)
    const [issue] = (await storage.listIssues(env, {}, { limit: 1, after: null })).rows
    await storage.findIssue(env, issue?.id ?? middle)
    // No work is due, so that each check of the plans runs on the same rows.
    const claim = { owner: 'o', now: NOON, leaseUntil: NOON + 1, limit: 50 }
    await storage.dueWork(NOON)
    await storage.claimWork({ kind: 'review_issue_record', ...claim })
    await storage.claimWorkInTurn({ kind: 'deliver_webhook', ...claim }, [])
    await storage.finishWork({ kind: 'simulate', owner: 'nobody', items: [{ environmentId: env, subjectId: middle }] })
  }

  /** The statements of the public API, on rows in the middle of the tables. */
  async function useAsClient() {
    const run = await runOf(storage, env, 'run 1000')
    const long = await runOf(storage, env, 'long')
    await storage.findRun(env, run.id)
    for (const page of [null, place]) {
      await storage.listEvents(env, run.id, { limit: 50, pageBytes: 1e6, after: page })
      await storage.listEvents(env, long.id, { limit: 50, pageBytes: 1e6, after: page })
    }
    for (const filter of [
      {},
      { status: 'FAILED' },
      { agentId: run.agentId },
      { agentId: run.agentId, status: 'FAILED' },
    ] as const) {
      await listRuns(run, filter)
    }
    const events = Array.from({ length: 60 }, (_, n) => llmCall({}, { runId: `run ${n * 20 + 1}`, agentId: 'a' }))
    await append(storage, env, ...events)
    await append(storage, env, ...events, ...events.map((one) => ({ ...one, onlyIfStored: true })))
  }

  async function listRuns({ id }: { id: string }, filter: RunCriteria) {
    await storage.listRuns(env, filter, { limit: 50, after: null })
    await storage.listRuns(env, filter, { limit: 50, after: { startedAt: NOON + 1_500, id, rank: 1_500 } })
  }

  /** Every frequent statement. */
  async function use() {
    await useAsClient()
    await useAsOperator()
    const run = await runOf(storage, env, 'run 1000')
    const long = await runOf(storage, env, 'long')
    const [found] = (await storage.listEventRows(env, run.id, { limit: 50, order: 'time', after: null })).rows
    assert.ok(found)
    await storage.findEvent(env, 'run 1000', found.eventId)
    for (const page of [null, place]) {
      await storage.listProblems(env, long.id, { limit: 50, pageBytes: 1_048_576, after: page })
      const bounds = { events: 400, bytes: 1e6, piece: { limit: 250, pageBytes: 524_288 } }
      await storage.searchRun(env, long.id, { text: 'needle', limit: 50, after: page, bounds })
      await storage.listEventRows(env, long.id, { limit: 50, order: 'time', after: page })
      await storage.listEventRows(env, long.id, { limit: 50, order: 'latest', after: page })
    }
    const lately = { time: NOON + LONG_RUN - 50, seq: LONG_RUN - 50 }
    await storage.listEventRows(env, long.id, { limit: 50, order: 'arrival', after: lately })
    const filter = { eventType: 'TOOL_CALL', label: 'LABEL', rowsLookedAt: 400 }
    for (const page of [null, place]) {
      await storage.listEventRows(env, long.id, { limit: 150, order: 'time', after: page, filter })
    }
    await storage.listEventRows(env, long.id, { limit: 50, order: 'arrival', after: lately, filter })
    const scan = {
      minCost: '0.000000001',
      minLengthMs: 1,
      hasErrors: 'true',
      tool: 'refund',
      runsLookedAt: 400,
    } as const
    const filters = [
      { from: NOON + 100, to: NOON + 1_500 },
      { q: SOME_RUNS },
      { q: 'session 7', status: 'FAILED' },
      { q: 'a' },
      { q: 'Support bot' },
      { agent: 'Support bot' },
      { completeness: 'GAPS' },
      { completeness: 'GAPS', status: 'FAILED' },
      { completeness: 'GAPS', agentId: run.agentId },
      { completeness: 'GAPS', from: NOON + 100, to: NOON + 1_500 },
      { completeness: 'GAPS', agentId: run.agentId, from: NOON + 100, to: NOON + 1_500 },
      { scan },
      { scan, status: 'FAILED' },
      { scan, status: 'RUNNING', stalledAt: NOON + HOUR },
      { scan, score: { name: 'accuracy', compare: '<', value: 0.5 } },
      { scan, unscored: 'accuracy', share: 10, status: 'FAILED' },
      { scan, score: { name: 'accuracy', compare: null, value: null }, scoreOrder: 'lowest' },
      { scan, score: { name: 'accuracy', compare: null, value: null }, scoreOrder: 'highest', agentId: run.agentId },
      ...(['cost', 'length', 'tokens', 'failures'] as const).flatMap((by) => {
        const rankedBy = { by, runsLookedAt: 400 }
        return [{ rankedBy }, { rankedBy, scan }, { rankedBy, agentId: run.agentId }]
      }),
      { rankedBy: { by: 'cost', runsLookedAt: 400 }, from: NOON + 100, to: NOON + 300 },
      { approvalsLookedAt: 100 },
      { approvalsLookedAt: 100, search: SOME_RUNS },
      { status: 'RUNNING', onlyOutcomesEnd: true },
      { status: 'FAILED', onlyOutcomesEnd: true },
    ] as const
    for (const filter of filters) await listRuns(run, filter)
    for (const after of [null, { startedAt: NOON + 1_000, id: run.id }]) {
      await storage.listGaps(env, {}, { limit: 50, after })
      await storage.listGaps(env, { agentId: run.agentId, from: NOON + 100, to: NOON + 1_500 }, { limit: 50, after })
    }
    const rule = {
      name: '',
      kind: 'incomplete_runs',
      threshold: 1,
      windowMinutes: 1,
      holdMinutes: 0,
      period: 'day',
    } as const
    const since = { since: NOON + RUNS - 2_000, from: NOON, to: NOON + HOUR, now: NOON }
    for (const agentId of [null, run.agentId]) await storage.measureAlert(env, { ...rule, agentId }, since)
    await storage.readUsage(env, NOON, NOON + HOUR, { limit: 50, after: null })
    const used = { hour: NOON, agentId: run.agentId, modelKey: '' }
    await storage.readUsage(env, NOON, NOON + HOUR, { limit: 50, after: used })
    for (const by of ['agent', 'model', 'promptVersion', 'tool', 'session'] as const) {
      const [from, to] =
        by === 'promptVersion' || by === 'session' ? [NOON + 500, NOON + 900] : [NOON + 2 * HOUR, NOON + 12 * HOUR]
      const window = { by, from, to, stepMs: HOUR }
      const tenant = { environmentId: env, workspaceId: workspace }
      await storage.readUsagePoints(tenant, window, { limit: 50, after: null })
      const whole = { ...window, stepMs: to - from }
      await storage.readUsagePoints(tenant, whole, { limit: 50, sort: 'tokens', after: null })
    }
    await useScores(run.id)
    await storage.listAgents(env, { limit: 50, after: null }, { withArchived: false })
    await storage.listAgents(env, { limit: 50, after: null }, { withArchived: false, search: 'bot' })
    await storage.readVersionResults(env, ['00000000-0000-0000-0000-000000000007'], 50)
    const calls = { from: NOON, to: NOON + HOUR, limit: 50, pageBytes: 1e6 } as const
    for (const place of [
      null,
      { time: NOON + 30, run: run.id, seq: 30 },
      { time: NOON + 9_000, run: long.id, seq: 9_000 },
    ]) {
      for (const kind of ['ran', 'held'] as const) await storage.listToolCalls(env, { ...calls, kind, after: place })
    }
    await storage.countToolCalls(env, 'held', NOON + 5_000, NOON + 6_000)
    await storage.countToolCalls(env, 'ran', NOON + 5_000, NOON + 6_000)
    const before = { time: NOON + 200, seq: 200 }
    await storage.listRunSteps(env, long.id, { limit: 50, pageBytes: 1e6, after: null, before })
    await storage.listRunPast(env, long.id, { limit: 50, pageBytes: 1e6, after: null, before })
    await storage.listRunPast(env, long.id, { limit: 50, pageBytes: 1e6, after: { time: NOON, seq: 1 }, before })
    await storage.listCallingRuns(env, NOON + 5_000, NOON + 6_000, 100)
    await storage.readDecisions(env, long.id, { from: NOON + 5_000, to: NOON + 6_000 })
    await storage.findDeployedVersions(env, [['p', 1]])
    await storage.listRunSteps(env, long.id, {
      limit: 50,
      pageBytes: 1e6,
      after: { time: NOON + 100, seq: 100 },
      before,
    })
    await storage.findRecordedInput(env, long.id, {
      approvalId: newId(),
      toolName: 'pay',
      inputHash: 'ab',
      until: NOON + 5_000,
      bounds: { rowsLookedAt: 400, limit: 50, pageBytes: 1e6 },
    })
    const asked = { approvalId: newId(), toolName: 'pay', inputHash: 'ab', runId: 'run 1000' }
    await storage.findRecordedInputs(env, [asked], { perRun: 200, bytes: 1e6 })
    await search()
    await eraseOne({ kind: 'run', subject: `run ${++erased}` })
    await eraseOne({ kind: 'session', subject: 'session without runs' })
    await storage.closeStalledRuns(env, NOON + HOUR, null)
    await removeOldRun()
  }

  async function useScores(run: string) {
    await storage.listScores(env, run, { limit: 50, after: null })
    await storage.readRunScores(env, [run, newId()])
    const judge = { kind: 'operator', id: 'ada' }
    await storage.readHiddenScores(env, [run, newId()], judge)
    await storage.readJudged(env, { name: 'accuracy', from: NOON + 500, to: NOON + 900 })
    await storage.listScoreNames(env, 50)
    for (const by of [null, 'agent', 'promptVersion', 'author'] as const) {
      const window = { from: NOON + 500, to: NOON + 900, by }
      await storage.sumScores({ environmentId: env, workspaceId: workspace }, window, { pairs: 300, rows: 100 })
    }
    const feedback = (n: number) => scored('accuracy', 1, { runId: `run ${n * 20 + 1}`, author: newId() })
    await append(storage, env, ...Array.from({ length: 20 }, (_, n) => feedback(n)))
    const score = operatorScore(run, 'quality', 1)
    await storage.giveScore(env, score, [])
    await storage.withdrawScore(env, run, score.id, null, [])
  }

  /** Each check removes another run. */
  async function removeOldRun() {
    const { id } = await runOf(storage, env, `run ${RUNS - 100 - ++removed}`)
    const later = NOON + 48 * HOUR
    await storage.startRetention(env, later)
    // The newest runs of an open issue stay.
    const newest = await runOf(storage, env, `run ${RUNS}`)
    const kept = await storage.removeExpiredRuns(env, later, { ids: [newest.id], most: 100, reachedAt: NOON })
    assert.equal(kept.runs, 0)
    const gone = await storage.removeExpiredRuns(env, later, { ids: [id], most: 100, reachedAt: NOON })
    assert.equal(gone.runs, 1)
  }

  /** Erases a subject, and deletes its events in two slices. */
  async function eraseOne(subject: Subject) {
    const erasure = newErasure(env, subject)
    await storage.createErasure(erasure, [])
    await advanceErasure(storage, { environmentId: env, id: erasure.id, now: () => NOON + HOUR, isOver: () => false })
    for (const limit of [EVENTS_OF_RUN / 2, 100]) await storage.deleteErased(env, erasure.id, limit, NOON + HOUR)
  }

  /** The rows of an erased run are already deleted, so plans are checked with the number of another run. */
  const ofOther = (value: unknown) => (value === 1_000_000 + erased ? 1_000_000 + erased + RUNS / 2 : value)

  interface Planned {
    text: string
    values: readonly unknown[]
    /** An earlier statement of the transaction that changed settings of the planner. */
    planner: string | null
  }

  /** The statements that the engine sends for this use, if they are on the data tables. */
  async function statements(used: () => Promise<void>): Promise<Planned[]> {
    sent.length = 0
    await used()
    const found = new Map<string, Planned>()
    for (const transaction of sent) {
      let planner: string | null = null
      for (const { text, values } of transaction) {
        if (text.includes("set_config('enable_")) planner = text
        // A plain INSERT is not planned again, because its rows already exist.
        const isPlanned = /^(WITH|SELECT|UPDATE|DELETE)/.test(text) || /^INSERT.*SELECT/s.test(text)
        if (isPlanned && USED.test(text))
          found.set(`${text} ${JSON.stringify(values)}`, { text, values: values.map(ofOther), planner })
      }
    }
    return [...found.values()]
  }

  async function check(mode: string, used = use, named = new Map<string, string>()) {
    const faults: string[] = []
    const found = await statements(used)
    for (const { text, values, planner } of found) {
      const name = named.get(text) ?? 'explained'
      await client.query(`BEGIN; SET LOCAL plan_cache_mode = ${mode}`)
      if (planner !== null) await client.query(planner)
      if (!named.has(text)) await client.query(`PREPARE ${name} AS ${text}`)
      const { rows } = await client.query(
        `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE ${name}(${values.map(literal).join(', ')})`,
      )
      await client.query('ROLLBACK')
      if (!named.has(text)) await client.query(`DEALLOCATE ${name}`)
      const plan = rows[0]['QUERY PLAN'][0].Plan as Plan
      const pages = plan['Shared Hit Blocks'] + plan['Shared Read Blocks']
      const written =
        plan['Node Type'] === 'ModifyTable' ? Math.max(...nodesOf(plan).map((node) => node['Actual Rows'])) : 0
      if (pages > MOST_PAGES + written * PAGES_WRITTEN) faults.push(`${pages} pages: ${text}`)
      faults.push(...nodesOf(plan).flatMap((node) => [...faultsOf(node, text), ...gapsOf(node, text)]))
      if (text.includes('has_gaps = 1')) faults.push(...notByGaps(plan, text))
    }
    assert.deepEqual([...new Set(faults)], [])
    assert.ok(found.length > 15)
  }

  /**
   * A plan that searches an index by its first column, the environment, and by a later one, but not by the second. It
   * reads all entries of the environment, and PostgreSQL counts only those that match.
   */
  function gapsOf(node: Plan, text: string): string[] {
    const { 'Index Name': index = '', 'Index Cond': condition = '', 'Relation Name': table = '' } = node
    const [first, second, ...later] = (indexes.get(index) ?? []).map((column) => {
      return new RegExp(`\\b${column}\\b`).test(condition)
    })
    return TABLES.includes(table) && !UNDER_WAY.includes(table) && first && second === false && later.includes(true)
      ? [`${index} by ${condition.slice(0, 100)}: ${text}`]
      : []
  }

  test('read no more than requested when they were made while the tables were empty', () =>
    check('force_generic_plan', useAsClient, prepared))

  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    test(`read no more than requested without table statistics (${mode})`, () => check(mode))
  }

  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    test(`read no more than requested once the tables are analysed (${mode})`, async () => {
      await client.query(`ANALYZE ${TABLES.join(', ')}`)
      await check(mode)
    })
  }
})

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}

/** Finds plans that do not use the partial indexes, which have only runs with gaps. */
function notByGaps(plan: Plan, text: string): string[] {
  const used = nodesOf(plan).flatMap((node) =>
    node['Relation Name'] === 'runs' ? [node['Index Name'] ?? 'no index'] : [],
  )
  const wanted = /\bagent_id = /.test(text) ? 'runs_with_gaps_of_agent' : 'runs_with_gaps'
  return used.length === 1 && used[0] === wanted ? [] : [`${used.join()} instead of ${wanted}: ${text}`]
}

function faultsOf(node: Plan, text: string): string[] {
  const table = node['Relation Name'] ?? ''
  if (!TABLES.includes(table) || node['Node Type'] === 'ModifyTable') return []
  const perLoop =
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  const rows = perLoop * node['Actual Loops']
  const isWhole = node['Node Type'] === 'Seq Scan'
  return isWhole || rows > MOST_ROWS
    ? [`${node['Node Type']} of ${rows} rows of ${node['Index Name'] ?? table}: ${text}`]
    : []
}

function literal(value: unknown): string {
  if (value === null) return 'NULL'
  if (Array.isArray(value)) return pg.escapeLiteral(`{${value.map((item) => JSON.stringify(item)).join(',')}}`)
  return pg.escapeLiteral(typeof value === 'string' ? value : JSON.stringify(value))
}
