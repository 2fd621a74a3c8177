/** A store in which the planner may choose badly: one tenant is large and many are small. */
import type pg from 'pg'
import { KEEP_ALL } from '../../../src/storage/data/retention.ts'
import { hashOf } from '../../../src/storage/runs/search.ts'
import { seedOf } from '../../../src/storage/sql/runs/search-index.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { HOUR, NOON, runOf } from '../suite/sample.ts'

/** `TEST_PLAN_SCALE=80 npm test -- postgres/plans` checks with ten million events, in a few minutes. */
export const SCALE = Number(process.env['TEST_PLAN_SCALE'] ?? 10)
export const RUNS = 2_000 * SCALE
export const EVENTS_OF_RUN = 60
export const LONG_RUN = 20_000
const TENANTS = 300
/** Envelopes of each tenant. */
const ENVELOPES = 200
/** Rows in each table that operators read, most of them of one tenant. */
export const OPERATOR_ROWS = 1_000 * SCALE

export interface LargeTenant {
  client: pg.Client
  storage: Storage
  env: string
  workspace: string
  webhook: string
}

/** Adds rows to the runs `first` and `long` of the tenant, and everything else. */
export async function fillLargeTenant(tenant: LargeTenant): Promise<void> {
  const { storage, env } = tenant
  await fillRuns(tenant, await runOf(storage, env, 'first'), await runOf(storage, env, 'long'))
  await fillOperators(tenant)
  await fillSearch(tenant)
}

async function fillRuns({ client, env }: LargeTenant, first: { id: string; agentId: string }, long: { id: string }) {
  const columns = `id, number, agent_id, started_at, last_event_at, received_at, event_count, differing_retries, prompt_tokens,
    completion_tokens, total_tokens, cost_nanos, last_seq, error_count, traits, run_id, status, session_key`
  await client.query(
    `INSERT INTO runs (environment_id, ${columns}, has_gaps, ended_at) SELECT $1, gen_random_uuid(), 1000000 + n, $2, $3::bigint + n, $3::bigint + n, $3, $4::bigint, 0, 0, 0, n, n, $4, n, '',
      'run ' || n, CASE WHEN n % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 'session ' || n % 100, CASE WHEN n % 20 = 0 THEN 1 ELSE 0 END, $3::bigint + 2 * n
      FROM generate_series(1, ${RUNS}) AS n ON CONFLICT DO NOTHING`,
    [env, first.agentId, NOON, EVENTS_OF_RUN],
  )
  await client.query(
    `INSERT INTO runs (environment_id, ${columns}) SELECT tenant, gen_random_uuid(), 2000000 + row_number() OVER (), gen_random_uuid(), $1::bigint, $1, $1, 1, 0, 0, 0,
      0, 0, 1, 0, '', 'run ' || n, 'COMPLETED', NULL
      FROM (SELECT gen_random_uuid() AS tenant FROM generate_series(1, ${TENANTS})) AS tenants, generate_series(1, 3) AS n`,
    [NOON],
  )
  // One envelope per agent and version of each client.
  await client.query(
    `INSERT INTO envelopes (environment_id, number, envelope_key, client_id, agent_name)
      SELECT tenant, 3000000 + n, 'key ' || n, 'client ' || n, 'agent'
      FROM (SELECT DISTINCT environment_id AS tenant FROM runs) AS tenants, generate_series(1, ${ENVELOPES}) AS n`,
  )
  const ofEvent = `gen_random_uuid(), CASE WHEN n % 4 = 0 THEN 'TOOL_CALL' ELSE 'AGENT_STEP' END, 'label', '{"text":"' || repeat('x', 100) || '"}', CASE WHEN n % 100 = 0 THEN 'error' END`
  const names = 'environment_id, run, seq, time, received_at, envelope, event_id, event_type, label, payload, problem'
  const envelope = `3000000 + 1 + n % ${ENVELOPES}`
  await client.query(
    `INSERT INTO events (${names}) SELECT r.environment_id, r.number, n, $1::bigint + n, $1, ${envelope}, ${ofEvent}
      FROM generate_series(1, ${EVENTS_OF_RUN}) AS n, runs AS r WHERE r.run_id LIKE 'run %'`,
    [NOON],
  )
  await client.query(
    `INSERT INTO events (${names}) SELECT $2, (SELECT number FROM runs WHERE environment_id = $2 AND id = $3), n, $1::bigint + n, $1, ${envelope},
        ${ofEvent} FROM generate_series(2, ${LONG_RUN}) AS n`,
    [NOON, env, long.id],
  )
}

/** The rows that operators read, most of them of one tenant. */
async function fillOperators({ client, env, workspace, webhook }: LargeTenant) {
  const series = (start: string, rest: string) =>
    client.query(`INSERT INTO ${start} SELECT ${rest} FROM generate_series(1, ${OPERATOR_ROWS}) AS n`)
  const id = `lpad(to_hex(n), 8, '0') || '-0000-7000-8000-000000000000'`
  const tenant = (uuid: string) => `CASE WHEN n % 10 = 0 THEN gen_random_uuid() ELSE '${uuid}'::uuid END`
  await series(
    `audit_log (id, workspace_id, at, actor_kind, actor_id, actor_name, action, target_kind, target_id, detail,
      request_id)`,
    `${id}, ${tenant(workspace)}::text, ${NOON}::bigint + n, 'token', 'actor ' || n % 500, 'name', 'action ' || n % 500,
      'kind ' || n % 500, 'target ' || n % 500, '{}', 'r'`,
  )
  await series(
    'work (kind, subject_id, environment_id, due_at, attempts)',
    `(ARRAY['review_issue_record', 'simulate', 'deliver_webhook'])[1 + n % 3], ${id}, '${env}', ${NOON}::bigint + n, 0`,
  )
  await series(
    `issues (environment_id, id, title, detection_type, state, state_at, opened_at, first_seen, last_seen,
      occurrences, recoveries, runs, agents, regressions, assignee)`,
    `${tenant(env)}, (${id})::uuid, 'title', 'LOOP', (ARRAY['OPEN', 'RESOLVED'])[1 + n % 2], ${NOON}, ${NOON}, ${NOON},
      ${NOON}::bigint + n, 1, 0, 1, 1, 0, CASE WHEN n % 100 = 0 THEN 'person ' || n % 7 END`,
  )
  // One issue has all runs, as if every run failed.
  await client.query(
    `INSERT INTO issue_fingerprints (environment_id, fingerprint, issue_id, home_issue_id, detection_type, title, facts,
        occurrences, recoveries, runs, agents)
      SELECT environment_id, 'v2:all', id, id, 'LOOP', 'title', '{}', 1, 0, 1, 1 FROM issues
        WHERE environment_id = $1 AND state = 'OPEN' ORDER BY last_seen DESC LIMIT 1`,
    [env],
  )
  await client.query(
    `INSERT INTO issue_affected (environment_id, fingerprint, kind, subject_key, subject, occurrences, first_seen, last_seen)
      SELECT environment_id, 'v2:all', 'run', encode(sha256(run_id::bytea), 'hex'), run_id, 1, started_at, started_at
        FROM runs WHERE environment_id = $1`,
    [env],
  )
  await series(
    `issue_records (environment_id, id, record_key, sdk_instance_id, client_record_id, record_kind, detection_type,
      agent_id, detected_at, seen_at, received_at, status, status_at, payload, evidence)`,
    `${tenant(env)}, (${id})::uuid, 'key ' || n, 'sdk', 'record ' || n,
      CASE WHEN n % 500 = 0 THEN 'RECOVERY' ELSE 'DETECTION' END, 'LOOP', 'agent', ${NOON}, ${NOON}, ${NOON},
      CASE WHEN n % 500 = 1 THEN 'FAILED' ELSE 'DECIDED' END, ${NOON}, '{}', '{}'`,
  )
  await client.query(
    `INSERT INTO version_runs SELECT environment_id, lpad((number % 100)::text, 32, '0')::uuid, id, started_at, 1, 0, 0, 0, 0, 0,
      0, 0 FROM runs`,
  )
  await client.query(
    `INSERT INTO run_scores (environment_id, name, run, kind, number, scores, scored_at, numbers, sum)
      SELECT environment_id, CASE WHEN number % 2 = 0 THEN 'accuracy' ELSE 'helpful' END, id, 'NUMBER', (number % 1000) / 1000.0, 1, started_at, 1, '[]' FROM runs`,
  )
  await client.query(
    `INSERT INTO scores (environment_id, run, id, name, kind, number, author_kind, author_id, author_name, scored_at, sent_as)
      SELECT environment_id, id, 'score of ' || id, 'accuracy', 'NUMBER', 0.5, 'client', '', '', started_at, 'event' FROM runs`,
  )
  await series(
    'latency_hours',
    `${tenant(env)}, ${NOON}::bigint + (n / 10)::bigint * ${HOUR}, gen_random_uuid(), 'model', n % 10, 0, 1`,
  )
  await series(
    'version_latencies',
    `${tenant(env)}, ${NOON}::bigint + (n / 10)::bigint * ${HOUR}, lpad((n % 100)::text, 32, '0')::uuid, 'LLM_CALL', n % 10, 0, 1`,
  )
  await series(
    'tool_hours',
    `${tenant(env)}, ${NOON}::bigint + (n / 10)::bigint * ${HOUR}, gen_random_uuid(), 'tool', n % 10, 0, 1, 0, 0, 0`,
  )
  await series(
    `usage_hours (environment_id, hour, agent_id, model_key, slot, events, prompt_tokens, completion_tokens,
      total_tokens, cost_nanos)`,
    `${tenant(env)}, ${NOON}::bigint + (n / 10)::bigint * ${HOUR}, gen_random_uuid(), 'model', 0, 1, 1, 1, 1, 1`,
  )
  await series(
    `webhook_deliveries (webhook_id, id, environment_id, type, status, attempts, created_at, data)`,
    `CASE WHEN n % 10 = 0 THEN 'other' ELSE '${webhook}' END, ${id}, '${env}', 'webhook.test',
      CASE WHEN n % 500 = 0 THEN 'FAILED' ELSE 'PENDING' END, 0, ${NOON}, '{}'`,
  )
}

/** Ten indexed events of each run. Few of them contain the word, and few runs wait for the index. */
async function fillSearch({ client, storage, env, workspace }: LargeTenant) {
  await storage.createWorkspace({ id: workspace, name: workspace, createdAt: NOON }, [])
  await storage.createEnvironment({ id: env, workspaceId: workspace, name: 'production', createdAt: NOON }, [])
  await storage.switchSearch(env, true, NOON, [])
  const settings = { ...KEEP_ALL, runDays: 1, keepOpenIssueRuns: true }
  await storage.changeRetention(workspace, env, { before: KEEP_ALL, settings }, NOON, [])
  await storage.changeStalledRule(env, { idleMinutes: 5, closeAs: 'FAILED' }, NOON, [])
  const hash = hashOf('needle', seedOf({ dialect: 'postgres' }, env, NOON))
  await client.query(
    `INSERT INTO search_runs (environment_id, run, id, indexed_seq, marks, marked_at)
      SELECT environment_id, number, id, 10, 1, CASE WHEN number % 1000 = 0 THEN ${NOON} END FROM runs`,
  )
  await client.query(
    `INSERT INTO search_entries (environment_id, run, seq, time, words)
      SELECT environment_id, number, n, ${NOON}::bigint + n,
        ARRAY[(number % 5000)::integer, n, CASE WHEN number % 1000 = 7 AND n = 3 THEN ${hash} ELSE 1 END]
        FROM runs, generate_series(1, 10) AS n`,
  )
}
