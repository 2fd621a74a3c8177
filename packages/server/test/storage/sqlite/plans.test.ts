import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT_ORDERS } from '@tacho/contract/runs/operator-run.ts'
import Database from 'better-sqlite3'
import type { AuditFilter } from '../../../src/storage/people/operators.ts'
import type { ApprovalFilter } from '../../../src/storage/approvals/approvals.ts'
import type { IssueFilter } from '../../../src/storage/issues/issues.ts'
import { runAct, type ActName } from '../../../src/storage/sql/acts.ts'
import { positional, type NamedParams, type Sql } from '../../../src/storage/sql/engine/sql.ts'
import { batchAppender } from '../../../src/storage/sql/record/append.ts'
import { sqliteAppendEngine } from '../../../src/storage/sqlite/append.ts'
import { migrate } from '../../../src/storage/sqlite/migrate.ts'
import { sqliteSql } from '../../../src/storage/sqlite/database.ts'
import type { EventRowsPage, NewEvent } from '../../../src/storage/record/events.ts'
import { KEEP_ALL } from '../../../src/storage/data/retention.ts'
import { DAY_MS } from '../../../src/storage/engine/times.ts'
import type { RunCriteria } from '../../../src/storage/runs/runs.ts'
import { newFailure } from '../suite/issues/issue-sample.ts'
import { newErasure, type Subject } from '../suite/data/erasure-sample.ts'
import { batch, HOUR, llmCall, newId, NOON } from '../suite/sample.ts'

const db = new Database(':memory:')
migrate(db)

/** The plans of the statements that an act runs on an empty store. */
async function plansOf(act: ActName, ...args: unknown[]): Promise<string[]> {
  const plans: string[] = []
  const real = sqliteSql(db)
  const explaining = <Result>(run: (text: string, params?: NamedParams) => Promise<Result>) => {
    return (text: string, params: NamedParams = {}) => {
      const [statement, values] = positional(text, params)
      const steps = db.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${statement}`).all(...values)
      plans.push(steps.map(({ detail }) => detail).join('; '))
      return run(text, params)
    }
  }
  const sql = {
    dialect: real.dialect,
    all: explaining(real.all),
    get: explaining(real.get),
    run: explaining(real.run),
    page: (text: string, params: NamedParams, limit: number) =>
      explaining((_, all = {}) => real.page(text, all, limit))(text, params),
  } as Sql
  await runAct(sql, act, args)
  return plans
}

const UUID = '01a1f852-77a1-75f1-a257-11717a8c523d'
const place = { time: 5, seq: 5 }

function assertIndexed(plan: string) {
  // A scan of a subquery's rows reads one page or one run.
  assert.doesNotMatch(plan, /SCAN (?!page|named|CONSTANT ROW|\(subquery|marked\b|run\b|r\b|u\b)/, plan)
}

test('a page of runs comes in order from the index of its filter, with any time range and cursor', async () => {
  const filters: [RunCriteria, string][] = [
    [{}, 'runs_by_start'],
    [{ agentId: 'a' }, 'runs_by_agent'],
    [{ status: 'FAILED' }, 'runs_by_status'],
    [{ session: 's' }, 'runs_by_session'],
    [{ agentId: 'a', status: 'FAILED' }, 'runs_by_agent_and_status'],
    [{ agentId: 'a', status: 'FAILED', session: 's' }, 'runs_by_session'],
    [{ completeness: 'GAPS' }, 'runs_with_gaps'],
    [{ completeness: 'GAPS', status: 'FAILED' }, 'runs_with_gaps'],
    [{ completeness: 'GAPS', agentId: 'a' }, 'runs_with_gaps_of_agent'],
    [{ completeness: 'GAPS', agentId: 'a', status: 'FAILED' }, 'runs_with_gaps_of_agent'],
    [{ completeness: 'GAPS', session: 's' }, 'runs_by_session'],
  ]
  for (const [filter, index] of filters) {
    for (const span of [{}, { from: 1 }, { to: 9 }, { from: 1, to: 9 }]) {
      for (const after of [null, { startedAt: 5, id: UUID }]) {
        const page = { limit: 10, after }
        const plans = await plansOf('listRuns', 'env', { ...filter, ...span }, page)
        const isOfGaps = filter.completeness && filter.status === undefined && filter.session === undefined
        if (isOfGaps) plans.push(...(await plansOf('listGaps', 'env', { agentId: filter.agentId, ...span }, page)))
        for (const plan of plans) {
          assert.match(plan, new RegExp(`INDEX ${index} `), plan)
          assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
          assertIndexed(plan)
        }
      }
    }
  }
})

test('a filter that no index answers is applied to a bounded number of runs, in the order of an index', async () => {
  const scan = { minCost: '0.000000001', minLengthMs: 1, hasErrors: 'true', tool: 'refund', runsLookedAt: 400 } as const
  for (const after of [null, { startedAt: 5, id: UUID }]) {
    const [rows = '', last = ''] = await plansOf('listRuns', 'env', { scan, status: 'FAILED' }, { limit: 10, after })
    for (const plan of [rows, last]) {
      assert.match(plan, /INDEX runs_by_status /)
      assertIndexed(plan)
    }
    const stalled = { scan, status: 'RUNNING', stalledAt: 5 }
    for (const plan of await plansOf('listRuns', 'env', stalled, { limit: 10, after })) assertIndexed(plan)
  }
})

test('runs by cost, length, tokens or failures come from an index; those of a filter are a bounded number', async () => {
  for (const by of ['cost', 'length', 'tokens', 'failures'] as const) {
    const index = new RegExp(`SEARCH runs USING (COVERING )?INDEX runs_ranked_by_${by} `)
    for (const after of [null, { startedAt: 5, id: UUID, rank: 5 }]) {
      const page = { limit: 10, after }
      const rankedBy = { by, runsLookedAt: 400 }
      const scan = {
        minCost: '0.000000001',
        minLengthMs: 1,
        hasErrors: 'true',
        tool: 'refund',
        runsLookedAt: 400,
      } as const
      for (const filter of [{}, { scan }]) {
        const plans = await plansOf('listRuns', 'env', { ...filter, rankedBy }, page)
        assert.equal(plans.length, 'scan' in filter ? 2 : 1)
        for (const plan of plans) {
          assert.match(plan, index)
          assert.doesNotMatch(plan, /SCAN (?!page|ranks|ranked|r\b|\(subquery)/, plan)
        }
        const [rows = ''] = plans
        assert.match(rows, /SEARCH runs USING INDEX sqlite_autoindex_runs_1 \(environment_id=\? AND id=\?\)/)
      }
      const few: [RunCriteria, string][] = [
        [{ agentId: 'a' }, 'runs_by_agent'],
        [{ status: 'FAILED', from: 1 }, 'runs_by_status'],
        [{ from: 1, to: 9 }, 'runs_by_start'],
      ]
      for (const [filter, of] of few) {
        const [count = '', rows = ''] = await plansOf('listRuns', 'env', { ...filter, rankedBy }, page)
        for (const plan of [count, rows]) {
          assert.match(plan, new RegExp(`SEARCH runs USING INDEX ${of} `))
          assert.doesNotMatch(plan, /SCAN (?!runs$|few|page|ranks|ranked|r\b|\(subquery)/, plan)
        }
      }
    }
  }
})

test('scores of a run, its sums and runs by a score are found by index, a bounded number at a time', async () => {
  const scan = { runsLookedAt: 400 }
  const score = { name: 'accuracy', compare: '<', value: 0.5 } as const
  const ofRun = /SEARCH s USING PRIMARY KEY \(environment_id=\? AND name=\? AND run=\?\)/
  for (const after of [null, { startedAt: 5, id: UUID, rank: 0.5 }]) {
    const unjudged = { name: 'accuracy', by: { kind: 'operator', id: UUID } }
    for (const filter of [
      { score },
      { unscored: 'accuracy', unjudged, share: 10, status: 'FAILED' },
    ] as RunCriteria[]) {
      const [rows = '', last = ''] = await plansOf('listRuns', 'env', { scan, ...filter }, { limit: 10, after })
      assert.match(rows, /INDEX runs_by_(start|status) /)
      assert.match(rows, ofRun)
      for (const plan of [rows, last]) assertIndexed(plan)
    }
    for (const scoreOrder of ['lowest', 'highest'] as const) {
      const [rows = '', last = ''] = await plansOf('listRuns', 'env', { scan, score, scoreOrder }, { limit: 10, after })
      assert.match(rows, /SEARCH run_scores USING COVERING INDEX run_scores_by_number /)
      assert.match(rows, /SEARCH runs USING INDEX sqlite_autoindex_runs_1 \(environment_id=\? AND id=\?\)/)
      for (const plan of [rows, last]) assert.doesNotMatch(plan, /SCAN (?!page|named|ranked|r\b|\(subquery)/, plan)
    }
  }
  const acts: [ActName, ...unknown[]][] = [
    ['listScores', 'env', UUID, { limit: 10, after: null }],
    ['readRunScores', 'env', [UUID]],
    ['readHiddenScores', 'env', [UUID], { kind: 'operator', id: UUID }],
    ['readJudged', 'env', { name: 'accuracy', from: 1, to: 9 }],
    ['listScoreNames', 'env', 10],
    ['sumScores', { environmentId: 'env', workspaceId: 'w' }, { from: 1, to: 9, by: 'agent' }, { pairs: 10, rows: 9 }],
    [
      'sumScores',
      { environmentId: 'env', workspaceId: 'w' },
      { from: 1, to: 9, by: 'promptVersion' },
      { pairs: 10, rows: 9 },
    ],
    ['sumScores', { environmentId: 'env', workspaceId: 'w' }, { from: 1, to: 9, by: 'author' }, { pairs: 10, rows: 9 }],
  ]
  for (const [act, ...args] of acts) {
    for (const plan of await plansOf(act, ...args))
      assert.doesNotMatch(plan, /SCAN (?!s\b|given\b|counted\b|ranked\b|kept\b|\(subquery)/, plan)
  }
  const [, sums = ''] = await plansOf(...(acts[5] ?? assert.fail()))
  assert.match(
    sums,
    /SEARCH run_scores USING INDEX run_scores_by_time \(environment_id=\? AND scored_at>\? AND scored_at<\?\)/,
  )
})

test('the runs that are running in the interface are found by two indexes', async () => {
  for (const after of [null, { startedAt: 5, id: UUID }]) {
    const filter = { status: 'RUNNING', onlyOutcomesEnd: true } as const
    const plans = await plansOf('listRuns', 'env', filter, { limit: 10, after })
    assert.deepEqual(
      plans.map((plan) => /INDEX (runs_\w+)/.exec(plan)?.[1]),
      ['runs_by_rule', 'runs_by_status', 'runs_by_rule'],
    )
    for (const plan of plans) assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
  }
})

test('runs with approvals are found by the newest requests, one by one', async () => {
  for (const filter of [{}, { from: 1, to: 9 }, { status: 'FAILED' }, { agentId: 'a' }] as RunCriteria[]) {
    const [plan = ''] = await plansOf(
      'listRuns',
      'env',
      { ...filter, approvalsLookedAt: 100 },
      { limit: 10, after: null },
    )
    assert.match(plan, /SEARCH approvals USING INDEX approvals_by_time /, plan)
    assert.match(plan, /SEARCH runs USING INDEX sqlite_autoindex_runs_2 \(environment_id=\? AND run_id=\?\)/, plan)
  }
})

test('each part of a search of runs uses an index, and sorts only its bounded candidates', async () => {
  db.prepare(
    "INSERT OR IGNORE INTO agents (environment_id, id, agent_key, external_id, name, name_time) VALUES ('env', ?, 'key', 'id', 'text', 1)",
  ).run(UUID)
  for (const after of [null, { startedAt: 5, id: UUID }]) {
    for (const filter of [{}, { status: 'FAILED' }, { from: 1, to: 9 }] as RunCriteria[]) {
      const plans = await plansOf('listRuns', 'env', { q: 'text', ...filter }, { limit: 10, after })
      const [ids = '', session = '', keys = '', names = '', agent = ''] = plans
      assert.match(
        ids,
        /SEARCH runs USING INDEX sqlite_autoindex_runs_2 \(environment_id=\? AND run_id>\? AND run_id<\?\)/,
      )
      assert.match(session, /INDEX runs_by_session /)
      assert.match(keys, /INDEX sqlite_autoindex_agents_2 \(environment_id=\? AND agent_key=\?\)/)
      assert.match(names, /SEARCH agents USING PRIMARY KEY \(environment_id=\?\)/)
      assert.match(agent, filter.status ? /INDEX runs_by_agent_and_status / : /INDEX runs_by_agent /)
      for (const plan of [session, keys, names, agent]) assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
      for (const plan of plans) assertIndexed(plan)
    }
  }
})

test('a filtered page of a timeline scans rows in order', async () => {
  const filter = { eventType: 'type', label: 'text', rowsLookedAt: 100 }
  for (const after of [null, place]) {
    for (const order of EVENT_ORDERS) {
      const rows: EventRowsPage = { limit: 10, order, after, filter }
      const plans = await plansOf('listEventRows', 'env', 'run', rows)
      assert.equal(plans.length, 2)
      for (const plan of plans) {
        assertIndexed(plan)
        assert.match(
          plan,
          order === 'arrival' ? /COVERING INDEX sqlite_autoindex_events_1/ : /INDEX events_by_time \(run=\?/,
        )
      }
    }
  }
})

test('a page of a timeline comes in order from its index', async () => {
  const bounds = { events: 9, bytes: 9, piece: { limit: 9, pageBytes: 9 } }
  for (const after of [null, place]) {
    const page = { limit: 10, pageBytes: 1, after }
    const plans = [
      ...(await plansOf('listEvents', 'env', 'run', page)),
      ...(await plansOf('listEventRows', 'env', 'run', { limit: 10, order: 'time', after })),
      ...(await plansOf('listEventRows', 'env', 'run', { limit: 10, order: 'latest', after })),
      ...(await plansOf('searchRun', 'env', 'run', { text: 'a', limit: 9, after, bounds })),
    ]
    assert.equal(plans.length, 6)
    for (const plan of plans) {
      assert.match(plan, /SEARCH e USING INDEX events_by_time \(run=\?/)
      assert.doesNotMatch(plan, /TEMP B-TREE/)
    }
  }
})

test('the problems of a run come in order from their index', async () => {
  for (const after of [null, place]) {
    const plans = await plansOf('listProblems', 'env', 'run', { limit: 10, pageBytes: 1, after })
    assert.equal(plans.length, 2)
    for (const plan of plans) {
      assert.match(plan, /SEARCH e USING INDEX problems_by_time \(run=\?/)
      assert.doesNotMatch(plan, /TEMP B-TREE/)
    }
  }
})

test('a page by arrival sorts the seqs of an index and reads only its own rows', async () => {
  const rows: EventRowsPage = { limit: 10, order: 'arrival', after: place }
  const [plan = ''] = await plansOf('listEventRows', 'env', 'run', rows)
  assert.match(plan, /SEARCH e USING COVERING INDEX sqlite_autoindex_events_1 \(environment_id=\? AND run=\?\)/)
  assert.match(plan, /SEARCH e USING INTEGER PRIMARY KEY/)
  assertIndexed(plan)
})

test('tool calls over all runs come from their index; only equal times are sorted', async () => {
  for (const [kind, index] of [
    ['ran', 'tool_calls_by_time'],
    ['held', 'held_calls_by_time'],
  ] as const) {
    for (const after of [null, { time: 5, run: UUID, seq: 5 }]) {
      const page = { kind, from: 1, to: 9, limit: 10, pageBytes: 1, after }
      for (const plan of await plansOf('listToolCalls', 'env', page)) {
        assert.match(
          plan,
          new RegExp(`SEARCH e USING INDEX ${index} \\(environment_id=\\? AND time>\\? AND time<\\?\\)`),
        )
        assert.match(plan, /TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY/)
        assertIndexed(plan)
      }
    }
    const [plan] = await plansOf('countToolCalls', 'env', kind, 1, 9)
    assert.match(plan ?? '', new RegExp(`COVERING INDEX ${index}`))
    assert.match(plan ?? '', new RegExp(`SEARCH e USING INDEX ${index} .*SEARCH g USING PRIMARY KEY`))
    assertIndexed(plan ?? '')
  }
  const page = { limit: 1, pageBytes: 1, after: null, before: place }
  for (const list of ['listRunSteps', 'listRunPast'] as const) {
    for (const steps of await plansOf(list, 'env', 'run', page)) {
      assert.match(steps, /SEARCH e USING INDEX events_by_time/)
      assert.doesNotMatch(steps, /TEMP B-TREE/)
    }
  }
  // Only the statement on runs: an empty store has no run, so no statement on events follows.
  const [versions] = (await plansOf('findDeployedVersions', 'env', [['p', 1]])).slice(-1)
  assert.doesNotMatch(versions ?? '', /SCAN [vc]\b/)
  const [runs] = await plansOf('listCallingRuns', 'env', 1, 9, 10)
  assert.match(runs ?? '', /tool_calls_by_time[^]*held_calls_by_time/)
})

test('a page of approvals comes in order from the index of its filter', async () => {
  const filters: [ApprovalFilter, string][] = [
    [{}, 'by_time'],
    [{ status: 'PENDING' }, 'pending'],
    [{ status: 'PENDING', agentId: 'a', runId: 'r' }, 'pending'],
    [{ status: 'PENDING', toolName: 't', inputHash: 'h' }, 'pending_by_tool'],
    [{ status: 'EXPIRED' }, 'by_status'],
    [{ toolName: 't' }, 'by_tool'],
    [{ agentId: 'a' }, 'by_agent'],
    [{ policyId: 'p' }, 'by_policy'],
    [{ runId: 'r' }, 'by_run'],
  ]
  for (const [filter, index] of filters) {
    for (const after of [null, { time: 5, id: UUID }]) {
      const [plan = ''] = await plansOf('listApprovals', 'env', filter, { limit: 10, after })
      assert.match(plan, new RegExp(`^SEARCH approvals USING INDEX approvals_${index} `), plan)
      assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    }
  }
  const overdue = [
    ...(await plansOf('expireApprovals', 'env', 5, 10)),
    ...(await plansOf('groupApprovals', 'env', 5, { requests: 10, groups: 10 })),
    ...(await plansOf('listOverdueEnvironments', 5, 10)),
  ]
  for (const plan of overdue) assert.doesNotMatch(plan, /SCAN (?!pending)/, plan)
})

test('a page of the audit log comes in order from the index of its filter', async () => {
  const filters: [AuditFilter, string][] = [
    [{}, 'workspace'],
    [{ action: 'a' }, 'action'],
    [{ actorId: 'a' }, 'actor'],
    [{ targetId: 't' }, 'target'],
    [{ targetKind: 'k' }, 'target_kind'],
  ]
  for (const [filter, index] of filters) {
    for (const span of [{}, { from: 1 }, { from: 1, to: 9 }]) {
      for (const after of [null, UUID]) {
        for (const workspaceId of ['workspace', null]) {
          const [plan = ''] = await plansOf('listAudit', workspaceId, { limit: 10, after }, { ...filter, ...span })
          const isWhole = workspaceId === null && index === 'workspace'
          const name = workspaceId === null ? `audit_log_everywhere_by_${index}` : `audit_log_by_${index}`
          if (isWhole) assert.match(plan, /(SEARCH|SCAN) audit_log( USING PRIMARY KEY|$)/, plan)
          else assert.match(plan, new RegExp(`SEARCH audit_log USING INDEX ${name} `), plan)
          assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
        }
      }
    }
  }
})

test('a page of issues and of issue records comes in order from the index of its filter', async () => {
  const filters: [IssueFilter, string][] = [
    [{}, 'issues_by_last_seen'],
    [{ state: 'OPEN' }, 'issues_by_state'],
    [{ assignee: 'ada' }, 'issues_by_assignee'],
    [{ assigned: 'true' }, 'issues_assigned'],
    [{ assigned: 'false' }, 'issues_unassigned'],
    [{ from: 1, to: 9 }, 'issues_by_last_seen'],
    [{ sort: 'firstSeen', firstFrom: 1, firstTo: 9 }, 'issues_by_first_seen'],
    [{ state: 'OPEN', from: 1 }, 'issues_by_state'],
  ]
  for (const [filter, index] of filters) {
    for (const after of [null, { lastSeen: 5, firstSeen: 5, id: UUID }]) {
      const [plan = ''] = await plansOf('listIssues', 'env', filter, { limit: 10, after })
      assert.match(plan, new RegExp(`^SEARCH i USING INDEX ${index} `), plan)
      assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    }
  }
  const [search = ''] = await plansOf('listIssues', 'env', { q: 'refund', state: 'OPEN' }, { limit: 10, after: null })
  assert.match(search, /^SEARCH issues USING INDEX issues_by_state /, search)
  assert.doesNotMatch(search, /TEMP B-TREE/, search)
  for (const [filter, index] of [
    [{}, 'sqlite_autoindex_issue_records_1'],
    [{ status: 'FAILED' }, 'issue_records_by_status'],
    [{ recordKind: 'RECOVERY' }, 'issue_records_by_kind'],
  ] as const) {
    for (const before of [null, UUID]) {
      const [plan = ''] = await plansOf('listIssueRecords', 'env', filter, { limit: 10, before })
      assert.match(plan, new RegExp(`^SEARCH r USING INDEX ${index} `), plan)
      assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    }
  }
})

test('the records of a failure are found by their key and by their run', async () => {
  const [of = '', ...more] = await plansOf('recordFailures', UUID, 'run', [newFailure()], NOON)
  const all = [of, ...more].join('\n')
  assert.match(all, /SEARCH issue_records USING INDEX issue_records_by_run /)
  const range = 'environment_id=? AND fingerprint>? AND fingerprint<?'
  assert.ok(all.includes('SEARCH issues USING PRIMARY KEY (environment_id=? AND id>?)'), all)
  assert.ok(all.includes(`SEARCH issue_fingerprints USING PRIMARY KEY (${range})`), all)
  assert.doesNotMatch(all, /^SCAN (?!json_each|\d|\(|CONSTANT)/m, all)
})

test('the search reads its index in order, and its job only what waits', async () => {
  const env = newId()
  db.prepare("INSERT INTO workspaces (id, name, created_at) VALUES ('w', 'w', 1)").run()
  db.prepare("INSERT INTO environments (id, workspace_id, name, created_at) VALUES (?, 'w', 'e', 1)").run(env)
  await plansOf('switchSearch', env, true, NOON, [])
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)), () => undefined)
  await commit([batch(env, [llmCall({}, { label: 'needle' })])])
  const waiting = [
    ...(await plansOf('readSearchSettings', env)),
    ...(await plansOf('markOlderRuns', env)),
    ...(await plansOf('readUnindexed', env)),
  ].filter((plan) => plan.includes('search_runs'))
  assert.equal(waiting.length, 3)
  for (const plan of waiting) assert.match(plan, /SEARCH search_runs USING .*INDEX search_runs_marked /, plan)
  const portion = await runAct(sqliteSql(db), 'readUnindexed', [env])
  const plans = await plansOf('indexEvents', env, portion)
  const clauses = [{ field: null, words: ['needle'], isExcluded: false }]
  for (const after of [null, { time: NOON * 2, run: 1, tie: 1 }]) {
    const found = await plansOf('searchEvents', env, { clauses, from: 1, to: NOON * 2, limit: 10, after })
    assert.ok(found.length > 2, 'the event was found and compared')
    // M: the words; > and <: the range of places; no sorter: FTS5 returns them in descending order.
    assert.match(found[0] ?? '', /^SCAN search_words VIRTUAL TABLE INDEX \d+:M1><; SEARCH s USING INTEGER PRIMARY KEY/)
    plans.push(...found.slice(1))
  }
  plans.push(...(await plansOf('switchSearch', env, false, NOON, [])), ...(await plansOf('removeIndexed', env)))
  for (const plan of plans) {
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    assertIndexed(plan)
  }
})

test('work is taken and counted by index, and the count is bounded', async () => {
  const hold = { kind: 'simulate', owner: 'o', items: [{ environmentId: 'e', subjectId: 's' }] }
  const plans = [
    await plansOf('dueWork', 5),
    await plansOf('claimWork', { kind: 'simulate', owner: 'o', now: 5, leaseUntil: 9, limit: 10 }),
    await plansOf('claimWorkInTurn', { kind: 'simulate', owner: 'o', now: 5, leaseUntil: 9, limit: 10 }, []),
    await plansOf('extendWork', hold, 9),
    await plansOf('postponeWork', hold, { dueAt: 9, error: null, counts: true }),
    await plansOf('finishWork', hold),
  ].flat()
  for (const plan of plans) assert.doesNotMatch(plan, /SCAN (?!due|waiting|counted|CONSTANT ROW|\d+-ROW VALUES)/, plan)
  const [backlog = ''] = await plansOf('workBacklog', 5)
  assert.doesNotMatch(backlog, /SCAN work/, backlog)
  assert.match(backlog, /SEARCH work USING COVERING INDEX work_by_due \(kind=\? AND due_at<\?\)/, backlog)
})

test('stops and grants in force are counted by indexes without those that ended or expired', async () => {
  const [grants = '', stops = ''] = await plansOf('countInForce', 5)
  assert.match(stops, /SCAN stops USING INDEX stops_in_effect/)
  assert.match(grants, /SEARCH approval_grants USING INDEX approval_grants_by_expiry \(expires_at>\?\)/)
})

test('deliveries are found by their webhook and its environment', async () => {
  const page = { limit: 10, after: null }
  const attempt = { environmentId: 'env', webhookId: 'w', id: 'd', owner: 'o', at: 1, status: 'FAILED' }
  const ended = { nextAttemptAt: null, responseStatus: 500, error: 'no', disable: 'gone' }
  const plans = [
    await plansOf('listDeliveries', 'env', 'w', {}, page),
    await plansOf('listDeliveries', 'env', 'w', { status: 'PENDING' }, { limit: 10, after: UUID }),
    await plansOf('redeliver', 'env', 'w', 'd', 1, []),
    await plansOf('startDelivery', { environmentId: 'env', id: 'd', owner: 'o' }),
    await plansOf('recordAttempt', { ...attempt, ...ended }),
    await plansOf('removeWebhook', 'env', 'w', []),
  ].flat()
  for (const plan of plans) {
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    assertIndexed(plan)
  }
})

test('links of Slack users are found by their webhook and its environment, or by their person', async () => {
  const user = { teamId: 'T', teamName: 't', userId: 'U', userName: 'u' }
  const code = { id: 'l', environmentId: 'env', webhookId: 'w', codeHash: 'h', codeExpiresAt: 9, changedAt: 1 }
  const plans = [
    await plansOf('askSlackLink', { ...code, ...user }),
    await plansOf('findSlackCode', 'env', 'w', 'h', 1),
    await plansOf('confirmSlackLink', { environmentId: 'env', webhookId: 'w', codeHash: 'h' }, 'o', 1, {}),
    await plansOf('findLinkedPerson', 'env', 'w', user),
    await plansOf('listSlackLinks', 'env', 'w', { limit: 10, after: UUID }),
    await plansOf('listSlackLinksOf', 'o'),
    await plansOf('removeSlackLink', 'env', 'w', 'l', []),
    await plansOf('removeSlackLinkOf', 'o', 'l', []),
    await plansOf('deleteExpiredSignIns', 1),
    await plansOf('isMemberAt', 'env', 'a@example.com'),
  ].flat()
  for (const plan of plans) {
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    assertIndexed(plan)
  }
})

test('what people are told is found by the person, the environment or the browser', async () => {
  const keys = { sessionId: 's', publicKey: 'k', authSecret: 'a', userAgent: '', openedAt: 1 }
  const plans = [
    await plansOf('readNotificationSettings', 'o'),
    await plansOf('changeNotificationSettings', 'o', { choices: [], quietHours: null }, []),
    await plansOf('addBrowser', { operatorId: 'o', endpointHash: 'h' }, []),
    await plansOf('renewBrowser', 'o', { endpointHash: 'h', ...keys }),
    await plansOf('removeBrowser', 'o', 'b', []),
    await plansOf('endSessions', 'o', { id: 's' }, []),
    await plansOf('listToldBrowsers', 'env', null, 10),
    await plansOf('listToldBrowsers', 'env', 'b', 10),
    await plansOf('listNotices', 'env', { browserId: 'b', event: 'issue.opened' }, 10),
    await plansOf('countWaitingApprovals', 'env', 1, 10),
  ].flat()
  for (const plan of plans) {
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    assertIndexed(plan)
  }
})

test('a part of an hour is counted from the runs and events of its time', async () => {
  const hour = NOON
  db.prepare(
    `INSERT INTO usage_hours (environment_id, hour, agent_id, model_key, slot, events, prompt_tokens, completion_tokens,
      total_tokens, cost_nanos) VALUES ('parts', ?, 'agent', '', 0, 0, 0, 0, 0, 0)`,
  ).run(hour)
  const tenant = { environmentId: 'parts', workspaceId: 'workspace' }
  const window = { by: 'agent', from: hour + 1, to: hour + HOUR, stepMs: HOUR - 1 }
  const rule = { kind: 'cost', agentId: 'agent' }
  const plans = [
    await plansOf('readUsagePoints', tenant, window, { limit: 10, after: null }),
    await plansOf('readUsage', 'parts', hour + 1, hour + HOUR, { limit: 50, after: null }),
    await plansOf('sumUncosted', 'parts', { from: hour + 1, to: hour + HOUR, agentId: 'agent' }),
    await plansOf('measureAlert', 'parts', rule, { since: hour, from: hour + 1, to: hour + HOUR, now: hour }),
  ].flat()
  for (const plan of plans) assertIndexed(plan)
  const events = plans.find((plan) => plan.includes('events_by_time'))
  assert.match(
    events ?? '',
    /runs_by_start \(environment_id=\? AND started_at<\?\).*events_by_time \(run=\? AND time>\? AND time<\?\)/,
  )
})

test('no statement reads a whole table', async () => {
  const page = { limit: 10, after: null }
  const plans = [
    await plansOf('findRun', 'env', 'run'),
    await plansOf('findRun', 'env', UUID),
    await plansOf('findEvent', 'env', 'run', 'event'),
    await plansOf('findRejection', 'env', 'run', 'event'),
    await plansOf('readUsage', 'env', 1, 2, { limit: 50, after: { hour: 1, agentId: 'agent', modelKey: '' } }),
    await plansOf('readVersionResults', 'env', [UUID], 10),
    ...(await Promise.all(
      ['agent', 'model', 'promptVersion', 'tool', 'session'].flatMap((by) => {
        const tenant = { environmentId: 'env', workspaceId: 'workspace' }
        return [undefined, 'cost'].map((sort) => {
          return plansOf('readUsagePoints', tenant, { by, from: 1, to: 9, stepMs: 8 }, { limit: 10, sort, after: null })
        })
      }),
    )),
    await plansOf('listAgents', 'env', page, { withArchived: false }),
    await plansOf('listAgents', 'env', page, { withArchived: false, search: 'bot' }),
    await plansOf('changeAgent', 'env', UUID, { archivedAt: 1 }, []),
    await plansOf('findApiKey', 'key'),
    await plansOf('listApiKeys', 'env', page),
    await plansOf('listValidApiKeys', 'env', ['key'], 1),
    await plansOf('listEnvironments', 'workspace', page),
    await plansOf('listWorkspaces', page),
    await plansOf('findOperatorToken', 'token'),
    await plansOf('revokeApiKey', 'env', 'key', 1),
    await plansOf('touchCredentials', [{ kind: 'api_key', id: 'key', at: 1 }]),
    await plansOf('secret', 'name', 'candidate'),
    await plansOf('listPrompts', 'workspace', null, page),
    await plansOf('listPrompts', 'workspace', 'name', page),
    await plansOf('findPrompt', 'workspace', 'prompt'),
    await plansOf('listPromptVersions', 'workspace', 'prompt', { limit: 10, after: 5 }),
    await plansOf('findPromptVersion', 'workspace', 'prompt', 1),
    await plansOf('listPolicies', 'workspace', page),
    await plansOf('findPolicy', 'workspace', 'policy'),
    await plansOf('listPolicyVersions', 'workspace', 'policy', { limit: 10, after: 5 }),
    await plansOf('listDeployments', 'env', page),
    await plansOf('listDeploymentChanges', 'env', {}, page),
    await plansOf('listDeploymentChanges', 'env', { kind: 'policy', id: 'policy' }, page),
    await plansOf('readConfiguration', 'env', null),
    await plansOf('writeConfigurationClients', 'env', [], 5),
    await plansOf('listConfigurationClients', 'env', undefined, page),
    await plansOf('listConfigurationClients', 'env', 'BEHIND', {
      limit: 10,
      after: { identifiedBy: 'client', clientId: 'a' },
    }),
    await plansOf('findSimulation', 'env', 'simulation'),
    await plansOf('listSimulations', 'env', page),
    await plansOf('findApproval', 'env', UUID),
    await plansOf('findApprovals', 'env', [UUID]),
    await plansOf('listApprovalsOfRun', 'env', 'run', 10),
    await plansOf('approvalRevisions', ['env']),
    await plansOf('listChangedApprovals', 'env', { revision: 5, id: UUID }, 10),
    await plansOf('listToolEvents', 'env', 'run', { limit: 1, pageBytes: 1, after: place }),
    await plansOf('findRecordedInput', 'env', 'run', {
      approvalId: UUID,
      toolName: 'pay',
      inputHash: 'ab',
      until: 5,
      bounds: { rowsLookedAt: 10, limit: 10, pageBytes: 10 },
    }),
    await plansOf('findRecordedInputs', 'env', [{ approvalId: UUID, toolName: 'pay', inputHash: 'ab', runId: 'run' }], {
      perRun: 10,
      bytes: 10,
    }),
  ].flat()
  for (const plan of plans) assertIndexed(plan)
})

/** Scans that are allowed: rows of the statement itself, and stored replies, which are at most those of one day. */
const EXPECTED_SCANS = new Set(['json_each', 'CONSTANT', 'idempotency_keys'])

test('an erasure and its removal find every row by an index', async () => {
  const kinds: Subject[] = [
    { kind: 'run', subject: 'run' },
    { kind: 'session', subject: 'session' },
    { kind: 'agent', subject: 'agent' },
    { kind: 'client', subject: 'client' },
    { kind: 'user', subject: 'user', field: ['user'] },
  ]
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)), () => undefined)
  for (const subject of kinds) {
    const env = newId()
    const named = { agentId: 'agent', sessionId: 'session', payload: '{"user":"user"}', promptUse: { versionId: UUID } }
    const toolUse = { tool: 'pay', problem: null }
    const call = llmCall({}, { ...named, toolUse, latencyMs: 5 } as Partial<NewEvent>)
    await commit([batch(env, [call])])
    const erasure = newErasure(env, subject)
    const plans = await plansOf('createErasure', erasure, [])
    plans.push(...(await plansOf('listErasable', env, erasure.id, 10)))
    const runs = db.prepare<[string], { number: number }>('SELECT number FROM runs WHERE environment_id = ?').all(env)
    assert.equal(runs.length, 1)
    const { time, eventType, usage, latencyMs, promptUse } = call
    const counted = {
      runEvents: 1,
      events: 1,
      usage: [{ time, eventType, usage, latencyMs, promptUse, toolUse, times: 1 }],
      agentFrom: null,
    }
    const slice = { runs: runs.map(({ number }) => ({ number, counted })), searchedTo: 1e9, searched: 1 }
    plans.push(...(await plansOf('removeErased', env, erasure.id, slice, NOON)))
    plans.push(...(await plansOf('concludeErasure', env, erasure.id, NOON)))
    plans.push(...(await plansOf('deleteErased', env, erasure.id, 1, NOON)))
    plans.push(...(await plansOf('deleteErased', env, erasure.id, 10, NOON)))
    const status = db.prepare('SELECT status FROM erasures WHERE id = ?').pluck().get(erasure.id)
    assert.equal(status, 'DONE')
    for (const plan of plans) {
      const scanned = Array.from(plan.matchAll(/SCAN (\w+)/g), ([, name = '']) => name)
      const rows = scanned.filter((name) => !plan.includes(`CO-ROUTINE ${name}`) && !EXPECTED_SCANS.has(name))
      assert.deepEqual(rows, [], `${subject.kind}: ${plan}`)
    }
  }
})

test('the runs that open issues keep are found by the runs, each issue by its id and newer runs by the index of its group', async () => {
  const [workspaceId, env] = [newId(), newId()]
  const run = (act: ActName, ...args: unknown[]) => runAct(sqliteSql(db), act, args)
  await run('createWorkspace', { id: workspaceId, name: workspaceId, createdAt: NOON }, [])
  await run('createEnvironment', { id: env, workspaceId, name: 'production', createdAt: NOON }, [])
  const settings = { ...KEEP_ALL, runDays: 1 }
  await run('changeRetention', workspaceId, env, { before: KEEP_ALL, settings }, NOON, [])
  const commit = batchAppender(sqliteAppendEngine(db, sqliteSql(db)), () => undefined)
  await commit([batch(env, [llmCall({}, { runId: 'old' })])])
  const plans = await plansOf('listExpiredRuns', env, 'runs', NOON + 9 * DAY_MS, null)
  const [last = '', kept = ''] = plans.slice(-2)
  assert.match(last, /INDEX issues_by_state /, last)
  for (const index of ['issue_affected_by_subject', 'issue_affected_by_last_seen']) {
    assert.match(kept, new RegExp(`INDEX ${index} `), kept)
  }
  assert.match(kept, /SEARCH n USING .*last_seen/, kept)
  for (const plan of [last, kept]) {
    assert.doesNotMatch(plan, /TEMP B-TREE/, plan)
    assertIndexed(plan)
  }
})
