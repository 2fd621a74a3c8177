/** Scores of runs and steps. Their writer locks the row of the run first, so the sums of a run are of one moment. */
import { LIMITS } from '@tacho/contract/limits.ts'
import type { NewEvent } from '../events.ts'
import {
  hasRoom,
  isLater,
  runScores,
  scoreId,
  type RunScoreRow,
  type ScoreGroup,
  type ScoreNameRow,
  type ScoreRow,
  type ScoreSumRow,
} from '../scores.ts'
import type { AuditEntry } from '../audit.ts'
import type { Page } from '../page.ts'
import { look, read, write } from './act.ts'
import { insertAudit } from './audit.ts'
import { inChunks, PLACES, ROWS } from './rows/chunks.ts'
import { insertRows } from './rows/insert-rows.ts'
import { columnsOfRow, namesOfRow } from './rows/row-names.ts'
import { OF_UUID } from './runs/runs.ts'
import { selectList, type Sql, type SqlValue } from './sql.ts'

export const scoresActs = {
  listScores: look(listScores),
  readRunScores: look(readRunScores),
  giveScore: write(giveScore),
  withdrawScore: write(withdrawScore),
  listScoreNames: look(listScoreNames),
  sumScores: read(sumScores),
}

const NAMES = namesOfRow('scores')
const COLUMNS = selectList(NAMES)
const OF_RUN = 'environment_id = ? AND run = ?'

// --- writing

/** An event with a score that was just stored, and its run. */
export interface ScoredEvent {
  run: string
  event: NewEvent
}

/** The transaction holds the rows of the runs. */
export async function addScores(sql: Sql, environmentId: string, scored: readonly ScoredEvent[]): Promise<void> {
  const byRun = [...Map.groupBy(scored, ({ run }) => run)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [run, events] of byRun) {
    const rows = events.flatMap(({ event }) => sentScore(run, event) ?? [])
    await keepScores(sql, environmentId, run, rows)
  }
}

function sentScore(run: string, { score, time, eventId }: NewEvent): ScoreRow | null {
  if (score === null) return null
  const { target, name, author, kind, number, category, comment } = score
  const of = { run, eventId: target, name, authorKind: 'client', authorId: author }
  const given = { authorName: author, kind, number, category, comment, scoredAt: time }
  return { id: scoreId(of), ...of, ...given, sentAs: eventId, importedAt: null }
}

/** Keeps those that are later than the stored ones and for which there is room. */
async function keepScores(sql: Sql, environmentId: string, run: string, given: readonly ScoreRow[]): Promise<void> {
  const kept = new Map((await scoresOf(sql, environmentId, run)).map((row) => [row.id, row]))
  const names = new Set(Array.from(kept.values(), ({ name }) => name))
  const changed = new Map<string, ScoreRow>()
  for (const row of given) {
    const before = kept.get(row.id)
    if (before === undefined ? !hasRoom(kept.size, names, row.name) : !isLater(row, before)) continue
    kept.set(row.id, row)
    names.add(row.name)
    changed.set(row.id, row)
  }
  if (changed.size === 0) return
  await writeScores(sql, environmentId, [...changed.values()])
  await writeSums(sql, environmentId, run, kept.values(), new Set(Array.from(changed.values(), ({ name }) => name)))
}

function scoresOf(sql: Sql, environmentId: string, run: string): Promise<ScoreRow[]> {
  const text = `SELECT ${COLUMNS} FROM scores WHERE ${OF_RUN} ORDER BY id LIMIT ?`
  return sql.all(text, [environmentId, run, LIMITS.scoresOfRun])
}

const CHANGED = Object.values(NAMES).filter((column) => column !== 'run' && column !== 'id')

async function writeScores(sql: Sql, environmentId: string, rows: readonly ScoreRow[]): Promise<void> {
  await insertRows(
    sql,
    'scores',
    rows.map((row) => ({ environment_id: environmentId, ...columnsOfRow('scores', row) })),
    `ON CONFLICT (environment_id, run, id) DO UPDATE SET ${CHANGED.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  )
}

const SUM_NAMES = {
  name: 'name',
  kind: 'kind',
  number: 'number',
  category: 'category',
  count: 'scores',
  scoredAt: 'scored_at',
} satisfies Record<keyof RunScoreRow, string>
const SUMMED = Object.values(SUM_NAMES).filter((column) => column !== 'name')

async function writeSums(
  sql: Sql,
  environmentId: string,
  run: string,
  kept: Iterable<ScoreRow>,
  names: ReadonlySet<string>,
): Promise<void> {
  const sums = runScores([...kept].filter(({ name }) => names.has(name)))
  const rows = sums.map(({ name, kind, number, category, count, scoredAt }) => {
    return { environment_id: environmentId, run, name, kind, number, category, scores: count, scored_at: scoredAt }
  })
  await insertRows(
    sql,
    'run_scores',
    rows,
    `ON CONFLICT (environment_id, name, run) DO UPDATE SET ${SUMMED.map((column) => `${column} = excluded.${column}`).join(', ')}`,
  )
  for (const name of names) {
    if (sums.some((sum) => sum.name === name)) continue
    await sql.run('DELETE FROM run_scores WHERE environment_id = ? AND name = ? AND run = ?', [
      environmentId,
      name,
      run,
    ])
  }
}

/** Those of the runs that exist. An import may write their scores until the transaction ends. */
export async function holdRuns(sql: Sql, environmentId: string, runs: readonly string[]): Promise<Set<string>> {
  const held = new Set<string>()
  for (const run of [...new Set(runs)].toSorted()) if (await holdRun(sql, environmentId, run)) held.add(run)
  return held
}

/** After an import has written their scores. */
export async function sumAgain(sql: Sql, environmentId: string, runs: ReadonlySet<string>): Promise<void> {
  for (const run of runs) {
    const kept = await scoresOf(sql, environmentId, run)
    await writeSums(sql, environmentId, run, kept, new Set(kept.map(({ name }) => name)))
  }
}

/** Whether the run exists. It stays, and nothing else changes its scores, until the transaction ends. */
async function holdRun(sql: Sql, environmentId: string, run: string): Promise<boolean> {
  const lock = sql.dialect === 'postgres' ? ' FOR NO KEY UPDATE' : ''
  const text = `SELECT id FROM runs WHERE environment_id = :env AND ${OF_UUID}${lock}`
  return (await sql.get(text, { env: environmentId, run })) !== null
}

/**
 * Stores an operator's score, in place of the one with its id. `too_many`: the run has as many scores, or names of scores, as
 * are kept.
 */
async function giveScore(
  sql: Sql,
  environmentId: string,
  score: ScoreRow,
  audit: AuditEntry[],
): Promise<'given' | 'no_run' | 'too_many'> {
  const { run, id, name } = score
  if (!(await holdRun(sql, environmentId, run))) return 'no_run'
  const kept = (await scoresOf(sql, environmentId, run)).filter((one) => one.id !== id)
  if (!hasRoom(kept.length, new Set(kept.map((one) => one.name)), name)) return 'too_many'
  await writeScores(sql, environmentId, [score])
  await writeSums(sql, environmentId, run, [...kept, score], new Set([name]))
  await insertAudit(sql, audit)
  return 'given'
}

/** `by`: only a score of this author. `sent`: a client sent it as an event, which stays. Null: no such score. */
async function withdrawScore(
  sql: Sql,
  environmentId: string,
  run: string,
  id: string,
  by: string | null,
  audit: AuditEntry[],
): Promise<ScoreRow | 'sent' | 'foreign' | null> {
  if (!(await holdRun(sql, environmentId, run))) return null
  const kept = await scoresOf(sql, environmentId, run)
  const score = kept.find((one) => one.id === id)
  if (score === undefined) return null
  if (score.sentAs !== null) return 'sent'
  if (by !== null && score.authorId !== by) return 'foreign'
  await sql.run(`DELETE FROM scores WHERE ${OF_RUN} AND id = ?`, [environmentId, run, id])
  await writeSums(
    sql,
    environmentId,
    run,
    kept.filter((one) => one.id !== id),
    new Set([score.name]),
  )
  await insertAudit(sql, audit)
  return score
}

/** With their run. */
export async function removeScores(sql: Sql, environmentId: string, run: string): Promise<void> {
  for (const table of ['scores', 'run_scores'])
    await sql.run(`DELETE FROM ${table} WHERE ${OF_RUN}`, [environmentId, run])
}

/** Comments are content: they go with the payloads of their run. */
export async function dropComments(sql: Sql, environmentId: string, run: string): Promise<void> {
  await sql.run(`UPDATE scores SET comment = NULL WHERE ${OF_RUN} AND comment IS NOT NULL`, [environmentId, run])
}

// --- reading

/** By id, after an id. `run`: internal id. */
function listScores(
  sql: Sql,
  environmentId: string,
  run: string,
  { limit, after }: { limit: number; after: string | null },
): Promise<Page<ScoreRow>> {
  const text = `SELECT ${COLUMNS} FROM scores WHERE ${OF_RUN} AND id > ? ORDER BY id`
  return sql.page(text, [environmentId, run, after ?? ''], limit)
}

const SUM_COLUMNS = selectList(SUM_NAMES, 's.')
/** No run has this id. */
const NO_RUN = '00000000-0000-0000-0000-000000000000'

/** What the scores of each run say, by name. Runs without scores are missing. */
async function readRunScores(
  sql: Sql,
  environmentId: string,
  runs: readonly string[],
): Promise<Map<string, RunScoreRow[]>> {
  // PostgreSQL searches the index once for each run, as in listed-runs.ts.
  const [text, params] =
    sql.dialect === 'sqlite'
      ? [
          `SELECT s.run, ${SUM_COLUMNS} FROM run_scores s WHERE s.environment_id = ? AND s.run IN (${PLACES}) ORDER BY s.run, s.name`,
          (chunk: string[]) => [environmentId, ...chunk],
        ]
      : [
          `SELECT s.run, ${SUM_COLUMNS} FROM (VALUES ${ROWS.replaceAll('?', 'CAST(? AS UUID)')}) AS wanted CROSS JOIN LATERAL
            (SELECT * FROM run_scores WHERE environment_id = ? AND run >= wanted.column1 AND run <= wanted.column1
              ORDER BY run, name LIMIT ${LIMITS.scoreNamesOfRun}) AS s`,
          (chunk: string[]) => [...chunk, environmentId],
        ]
  const query = (chunk: string[]) => sql.all<RunScoreRow & { run: string }>(text, params(chunk))
  const rows = await inChunks([...runs], query, NO_RUN)
  const plain = rows.map(({ run, ...row }) => ({ run, row }))
  return new Map(
    [...Map.groupBy(plain, ({ run }) => run)].map(([run, some]) => [
      run,
      some.map(({ row }) => row).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    ]),
  )
}

/** Jumps from name to name, because each may be the name of a million rows. */
async function listScoreNames(sql: Sql, environmentId: string, limit: number): Promise<ScoreNameRow[]> {
  const next = `SELECT name FROM run_scores WHERE environment_id = ? AND name > ? ORDER BY name, run LIMIT 1`
  const latest = `SELECT name, kind, scored_at AS "scoredAt" FROM run_scores WHERE environment_id = ? AND name = ?
    ORDER BY name DESC, run DESC LIMIT 1`
  const names: ScoreNameRow[] = []
  for (let after = ''; names.length < limit;) {
    const found = await sql.get<{ name: string }>(next, [environmentId, after])
    const row = found && (await sql.get<ScoreNameRow>(latest, [environmentId, found.name]))
    if (row === null) break
    names.push(row)
    after = row.name
  }
  return names
}

const GROUPS: Record<ScoreGroup, { join: string; key: string; name: string }> = {
  agent: {
    join: `JOIN runs r ON r.environment_id = ? AND r.id = s.run JOIN agents a ON a.environment_id = r.environment_id
      AND a.id = r.agent_id`,
    key: 'r.agent_id',
    name: 'MIN(COALESCE(a.display_name, a.name))',
  },
  promptVersion: {
    join: 'JOIN version_runs v ON v.environment_id = ? AND v.run = s.run',
    key: 'v.prompt_version_id',
    name: 'NULL',
  },
}

const COUNTED_SCORES = `CAST(COUNT(*) AS BIGINT) AS runs, CAST(COUNT(s.number) AS BIGINT) AS numbers,
  COALESCE(SUM(s.number), 0) AS total`

/** Of the scores given from `from` up to `to`, at most `most` pairs of run and name, the latest. */
async function sumScores(
  sql: Sql,
  { environmentId, workspaceId }: { environmentId: string; workspaceId: string },
  { from, to, by }: { from: number; to: number; by: ScoreGroup | null },
  most: number,
): Promise<{ rows: ScoreSumRow[]; isCut: boolean }> {
  const latest = `SELECT * FROM run_scores WHERE environment_id = ? AND scored_at >= ? AND scored_at < ?
    ORDER BY scored_at DESC LIMIT ?`
  const params: SqlValue[] = [environmentId, from, to, most]
  const all = await sql.get<{ count: number }>(
    `SELECT CAST(COUNT(*) AS BIGINT) AS count FROM (${latest}) given`,
    params,
  )
  const group = by === null ? null : GROUPS[by]
  const text = `SELECT ${group?.key ?? "''"} AS key, ${group?.name ?? "''"} AS "keyName", s.name, s.category, ${COUNTED_SCORES}
    FROM (${latest}) s ${group?.join ?? ''} GROUP BY ${group ? `${group.key}, ` : ''}s.name, s.category
    ORDER BY key, s.name, s.category`
  const rows = await sql.all<ScoreSumRow>(text, group ? [...params, environmentId] : params)
  if (by === 'promptVersion') await nameVersions(sql, workspaceId, rows)
  return { rows, isCut: (all?.count ?? 0) >= most }
}

async function nameVersions(sql: Sql, workspaceId: string, rows: ScoreSumRow[]): Promise<void> {
  const text = `SELECT p.name || ' version ' || v.number AS name FROM prompt_versions v
    JOIN prompts p ON p.workspace_id = v.workspace_id AND p.id = v.prompt_id WHERE v.workspace_id = ? AND v.id = ?`
  for (const [key, some] of Map.groupBy(rows, (row) => row.key)) {
    const name = (await sql.get<{ name: string }>(text, [workspaceId, key]))?.name ?? null
    for (const row of some) row.keyName = name
  }
}

/** What the newest `runs` runs of a prompt version were scored. */
export function scoresOfVersion(
  sql: Sql,
  environmentId: string,
  versionId: string,
  runs: number,
): Promise<ScoreSumRow[]> {
  const newest = `SELECT run FROM version_runs WHERE environment_id = ? AND prompt_version_id = ? ORDER BY run DESC LIMIT ?`
  const text = `SELECT '' AS key, '' AS "keyName", s.name, s.category, ${COUNTED_SCORES}
    FROM (${newest}) named JOIN run_scores s ON s.environment_id = ? AND s.run = named.run
    GROUP BY s.name, s.category ORDER BY s.name, s.category`
  return sql.all(text, [environmentId, versionId, runs, environmentId])
}
