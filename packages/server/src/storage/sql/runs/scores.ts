/** A writer of scores first locks the row of the run, so the sums of a run are consistent. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewEvent } from '../../record/events.ts'
import {
  addScore,
  isLater,
  runScores,
  scoreId,
  takeRoom,
  type RunScoreRow,
  type RunScoreSums,
  type ScoreGroup,
  type ScoreNameRow,
  type ScoreRoom,
  type ScoreRow,
  type ScoreSumRow,
  type SummedScore,
  type HiddenScoreRow,
  type Judge,
  type JudgedRow,
} from '../../runs/scores.ts'
import type { AuditEntry } from '../../people/operators.ts'
import type { PageById } from '../../engine/page.ts'
import { lookup, read, write, selectList, type Sql } from '../engine/sql.ts'
import { insertAudit } from '../people/audit.ts'
import { allIn, insertRows, replacing, withJson, columnsOfRow, rowFor } from '../engine/rows.ts'
import { OF_UUID } from './runs.ts'
import { rowsByKey } from '../engine/revision.ts'

export const scoresActs = {
  ...lookup({ listScores, readRunScores, listScoreNames }),
  ...read({ sumScores }),
  ...write({ giveScore, withdrawScore }),
}

const COLUMNS = selectList(columnsOfRow('scores'))
const OF_RUN = 'environment_id = :env AND run = :run'

export interface ScoredEvent {
  run: string
  event: NewEvent
}

/** The transaction must already hold the locks on the rows of the runs. */
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
  const scoreFields = { authorName: author, kind, number, category, comment, scoredAt: time }
  return { id: scoreId(of), ...of, ...scoreFields, sentAs: eventId, importedAt: null }
}

async function keepScores(
  sql: Sql,
  environmentId: string,
  run: string,
  givenScores: readonly ScoreRow[],
): Promise<void> {
  if (givenScores.length === 0) return
  const sums = await sumsOf(sql, environmentId, run)
  const room = roomIn(sums)
  const stored = await scoresWithIds(sql, environmentId, run, [...new Set(givenScores.map(({ id }) => id))])
  const storedById = new Map(stored.map((row) => [row.id, row]))
  const changed = new Map<string, ScoreRow>()
  for (const row of givenScores) {
    const before = storedById.get(row.id) ?? null
    if (before === null ? !takeRoom(room, row.name) : !isLater(row, before)) continue
    sums.set(row.name, addScore(sums.get(row.name), row, before))
    storedById.set(row.id, row)
    changed.set(row.id, row)
  }
  if (changed.size === 0) return
  const names = new Set(changed.values().map(({ name }) => name))
  const changedSums = [...sums.values()].filter(({ name }) => names.has(name))
  await writeScores(sql, environmentId, [...changed.values()])
  await writeSums(sql, environmentId, run, changedSums)
}

async function sumsOf(sql: Sql, environmentId: string, run: string): Promise<Map<string, RunScoreSums>> {
  const text = `SELECT ${SUMS}, scores AS count FROM run_scores WHERE ${OF_RUN}
    ORDER BY run, name LIMIT ${LIMITS.scoreNamesOfRun}`
  const rows = (await sql.all<object>(text, { env: environmentId, run })).map(toSums)
  return new Map(rows.map((row) => [row.name, row]))
}

const roomIn = (sums: ReadonlyMap<string, RunScoreRow>): ScoreRoom =>
  new Map(sums.values().map(({ name, count }) => [name, count]))

const SUMMED_COLUMNS = selectList('id name kind number category scored_at sent_as')

function scoresWithIds(sql: Sql, environmentId: string, run: string, ids: readonly string[]): Promise<SummedScore[]> {
  const text = `SELECT ${SUMMED_COLUMNS} FROM scores WHERE ${OF_RUN} AND id IN (:ids)`
  return allIn(sql, text, { env: environmentId, run, ids })
}

const CHANGED = columnsOfRow('scores').filter((column) => column !== 'run' && column !== 'id')

async function writeScores(sql: Sql, environmentId: string, rows: readonly ScoreRow[]): Promise<void> {
  const stored = rows.map((row) => ({ environmentId, ...rowFor('scores', row) }))
  await insertRows(sql, 'scores', stored, `ON CONFLICT (environment_id, run, id) ${replacing(CHANGED)}`)
}

const RUN_SCORE = 'name kind number category scored_at'
const SUMS = selectList(`${RUN_SCORE} sent_as numbers sum`)
const toSums = withJson<RunScoreSums>('sum')
const SUMMED = ['kind', 'number', 'category', 'scores', 'scored_at', 'sent_as', 'numbers', 'sum']

async function writeSums(sql: Sql, environmentId: string, run: string, sums: readonly RunScoreSums[]): Promise<void> {
  const rows = sums.map(({ count, ...row }) => ({ environmentId, run, ...row, scores: count }))
  await insertRows(sql, 'run_scores', rows, `ON CONFLICT (environment_id, name, run) ${replacing(SUMMED)}`)
}

/** Does not read comments, of which a run may have megabytes. */
async function sumAgain(sql: Sql, environmentId: string, run: string, names: ReadonlySet<string>): Promise<void> {
  const text = `SELECT ${SUMMED_COLUMNS} FROM scores WHERE ${OF_RUN} AND name IN (:names) ORDER BY id`
  const scores = await allIn<SummedScore>(sql, text, { env: environmentId, run, names: [...names] })
  const sums = runScores(scores)
  await writeSums(sql, environmentId, run, sums)
  const remove = `DELETE FROM run_scores WHERE ${OF_RUN} AND name = :name`
  for (const name of names) {
    if (sums.every((sum) => sum.name !== name)) await sql.run(remove, { env: environmentId, run, name })
  }
}

export interface HeldRun {
  room: ScoreRoom
  writtenNames: Set<string>
}

export async function holdRuns(sql: Sql, environmentId: string, runs: readonly string[]) {
  const held = new Map<string, HeldRun>()
  for (const run of [...new Set(runs)].toSorted()) {
    if (!(await holdRun(sql, environmentId, run))) continue
    held.set(run, { room: roomIn(await sumsOf(sql, environmentId, run)), writtenNames: new Set() })
  }
  return held
}

export async function sumHeldRuns(sql: Sql, environmentId: string, held: ReadonlyMap<string, HeldRun>): Promise<void> {
  for (const [run, { writtenNames }] of held) {
    if (writtenNames.size > 0) await sumAgain(sql, environmentId, run, writtenNames)
  }
}

/** Locks a run: until the transaction ends, it stays, and nothing else changes its scores. False: no such run. */
async function holdRun(sql: Sql, environmentId: string, run: string): Promise<boolean> {
  const lock = sql.dialect === 'postgres' ? ' FOR NO KEY UPDATE' : ''
  const text = `SELECT id FROM runs WHERE environment_id = :env AND ${OF_UUID}${lock}`
  return (await sql.get(text, { env: environmentId, run })) !== null
}

async function giveScore(
  sql: Sql,
  environmentId: string,
  score: ScoreRow,
  audit: AuditEntry[],
): Promise<'given' | 'no_run' | 'too_many'> {
  const { run, id, name } = score
  if (!(await holdRun(sql, environmentId, run))) return 'no_run'
  const room = roomIn(await sumsOf(sql, environmentId, run))
  const [before] = await scoresWithIds(sql, environmentId, run, [id])
  if (before === undefined && !takeRoom(room, name)) return 'too_many'
  await writeScores(sql, environmentId, [score])
  await sumAgain(sql, environmentId, run, new Set([name]))
  await insertAudit(sql, audit)
  return 'given'
}

/** `by`: only a score of this author. `sent`: a client sent it as an event, which stays. */
async function withdrawScore(
  sql: Sql,
  environmentId: string,
  run: string,
  id: string,
  by: string | null,
  audit: AuditEntry[],
): Promise<ScoreRow | 'sent' | 'foreign' | null> {
  if (!(await holdRun(sql, environmentId, run))) return null
  const one = `${OF_RUN} AND id = :id`
  const of = { env: environmentId, run, id }
  const score = await sql.get<ScoreRow>(`SELECT ${COLUMNS} FROM scores WHERE ${one}`, of)
  if (score === null) return null
  if (score.sentAs !== null) return 'sent'
  if (by !== null && score.authorId !== by) return 'foreign'
  await sql.run(`DELETE FROM scores WHERE ${one}`, of)
  await sumAgain(sql, environmentId, run, new Set([score.name]))
  await insertAudit(sql, audit)
  return score
}

export async function removeScores(sql: Sql, environmentId: string, run: string): Promise<void> {
  for (const table of ['scores', 'run_scores'])
    await sql.run(`DELETE FROM ${table} WHERE ${OF_RUN}`, { env: environmentId, run })
}

/** Comments are content: they go with the payloads of their run. */
export async function dropComments(sql: Sql, environmentId: string, run: string): Promise<void> {
  const text = `UPDATE scores SET comment = NULL WHERE ${OF_RUN} AND comment IS NOT NULL`
  await sql.run(text, { env: environmentId, run })
}

function listScores(sql: Sql, environmentId: string, run: string, { limit, after }: PageById) {
  const text = `SELECT ${COLUMNS} FROM scores WHERE ${OF_RUN} AND id > :after ORDER BY id`
  return sql.page<ScoreRow>(text, { env: environmentId, run, after: after ?? '' }, limit)
}

async function readRunScores(sql: Sql, environmentId: string, runs: readonly string[]) {
  const columns = `r.run, ${selectList(RUN_SCORE, 'r.')}, r.scores AS count`
  const by = { table: 'run_scores', key: 'run', columns, order: `run, name LIMIT ${LIMITS.scoreNamesOfRun}` } as const
  const scoreRows = await rowsByKey<RunScoreRow & { run: string }>(sql, environmentId, runs, by)
  const rows = scoreRows.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  const byRun = Map.groupBy(rows, ({ run }) => run)
  return new Map(byRun.entries().map(([run, some]) => [run, some.map(({ run: _, ...row }): RunScoreRow => row)]))
}

/** Jumps from name to name, because each may be the name of a million rows. */
async function listScoreNames(sql: Sql, environmentId: string, limit: number): Promise<ScoreNameRow[]> {
  const next = `SELECT name FROM run_scores WHERE environment_id = :env AND name > :after ORDER BY name, run LIMIT 1`
  const latest = `SELECT name, kind, scored_at AS "scoredAt" FROM run_scores WHERE environment_id = :env AND name = :name
    ORDER BY name DESC, run DESC LIMIT 1`
  const names: ScoreNameRow[] = []
  for (let after = ''; names.length < limit;) {
    const nextName = await sql.get<{ name: string }>(next, { env: environmentId, after })
    const row = nextName && (await sql.get<ScoreNameRow>(latest, { env: environmentId, ...nextName }))
    if (row === null) break
    names.push(row)
    after = row.name
  }
  return names
}

const GROUPS: Record<ScoreGroup, { join: string; key: string; name: string }> = {
  agent: {
    join: `JOIN runs r ON r.environment_id = :env AND r.id = s.run JOIN agents a ON a.environment_id = r.environment_id
      AND a.id = r.agent_id`,
    key: 'r.agent_id',
    name: 'COALESCE(a.display_name, a.name)',
  },
  promptVersion: {
    join: 'JOIN version_runs v ON v.environment_id = :env AND v.run = s.run',
    key: 'v.prompt_version_id',
    name: 'NULL',
  },
  author: { join: '', key: "s.author_kind || ' ' || s.author_id", name: 's.author_name' },
}
const UNGROUPED = { join: '', key: "''", name: "''" }

const ofName = (sum: string) => `SUM(${sum}) OVER (PARTITION BY key, name)`

/** Clients choose names and categories, so there may be as many as scores: `:rows` keeps the names with most runs. */
function summed(scores: string, { join, key, name } = UNGROUPED): string {
  const counted = `SELECT ${key} AS key, MIN(${name}) AS "keyName", s.name, s.category, COUNT(*) AS given,
    COUNT(s.number) AS numbered, COALESCE(SUM(s.number), 0) AS added, COALESCE(SUM(s.number * s.number), 0) AS squared
    FROM ${scores} s ${join}
    GROUP BY ${key === "''" ? '' : `${key}, `}s.name, s.category`
  const ranked = `SELECT counted.*, ${ofName('given')} AS runs, ${ofName('numbered')} AS numbers, ${ofName('added')} AS total, ${ofName('squared')} AS squares,
    ROW_NUMBER() OVER (PARTITION BY key, name, category IS NULL ORDER BY given DESC, category) AS place FROM (${counted}) counted`
  const frequent = 'category IS NULL DESC, place'
  const firstCategories = `SELECT * FROM (${ranked}) ranked WHERE place <= ${LIMITS.scoreCategories}
    ORDER BY runs DESC, key, name, ${frequent} LIMIT :rows`
  return `SELECT key, "keyName", name, category, CAST(given AS BIGINT) AS given, CAST(runs AS BIGINT) AS runs,
    CAST(numbers AS BIGINT) AS numbers, total, squares FROM (${firstCategories}) kept ORDER BY key, name, ${frequent}`
}

async function sumScores(
  sql: Sql,
  { environmentId, workspaceId }: { environmentId: string; workspaceId: string },
  { from, to, by }: { from: number; to: number; by: ScoreGroup | null },
  most: { pairs: number; rows: number },
): Promise<{ rows: ScoreSumRow[]; isCut: boolean }> {
  const latest = `(SELECT * FROM run_scores WHERE environment_id = :env AND scored_at >= :from AND scored_at < :to
    ORDER BY scored_at DESC LIMIT :pairs)`
  const params = { env: environmentId, from, to, pairs: most.pairs }
  const all = await sql.get<{ count: number }>(`SELECT CAST(COUNT(*) AS BIGINT) AS count FROM ${latest} given`, params)
  const ofAuthors = `(SELECT own.* FROM ${latest} given JOIN scores own ON own.environment_id = :env AND own.run = given.run
    AND own.name = given.name WHERE own.scored_at >= :from AND own.scored_at < :to)`
  const text = summed(by === 'author' ? ofAuthors : latest, by === null ? UNGROUPED : GROUPS[by])
  const rows = await sql.all<ScoreSumRow>(text, { ...params, rows: most.rows })
  if (by === 'promptVersion') await nameVersions(sql, workspaceId, rows)
  return { rows, isCut: (all?.count ?? 0) >= most.pairs || rows.length >= most.rows }
}

async function nameVersions(sql: Sql, workspaceId: string, rows: ScoreSumRow[]): Promise<void> {
  const text = `SELECT p.name || ' version ' || v.number AS name FROM prompt_versions v
    JOIN prompts p ON p.workspace_id = v.workspace_id AND p.id = v.prompt_id WHERE v.workspace_id = :workspaceId AND v.id = :key`
  for (const [key, some] of Map.groupBy(rows, (row) => row.key)) {
    const name = (await sql.get<{ name: string }>(text, { workspaceId, key }))?.name ?? null
    for (const row of some) row.keyName = name
  }
}

export function scoresOfVersion(sql: Sql, environmentId: string, versionId: string, runs: number) {
  const newest = `SELECT run FROM version_runs WHERE environment_id = :env AND prompt_version_id = :versionId
    ORDER BY run DESC LIMIT :runs`
  const scores = `(SELECT of_run.* FROM (${newest}) named JOIN run_scores of_run ON of_run.environment_id = :env
    AND of_run.run = named.run)`
  return sql.all<ScoreSumRow>(summed(scores), { env: environmentId, versionId, runs, rows: VERSION_ROWS })
}

const VERSION_ROWS = LIMITS.scoreNamesOfRun * LIMITS.scoreCategories

/** Hidden scores of other judges, and the agreement of two judges. */
export const judgementsActs = { ...lookup({ readHiddenScores }), ...read({ readJudged }) }

/**
 * Scores by operators and tokens for names that the judge has not scored yet. Scores sent by clients are not hidden.
 */
async function readHiddenScores(sql: Sql, environmentId: string, runs: readonly string[], { kind, id }: Judge) {
  if (runs.length === 0) return []
  const text = `SELECT run, name, event_id AS "eventId", CAST(COUNT(*) AS BIGINT) AS count FROM scores
    WHERE environment_id = :env AND run IN (:runs) AND author_kind <> 'client' GROUP BY run, name, event_id
    HAVING MAX(CASE WHEN author_kind = :kind AND author_id = :id THEN 1 ELSE 0 END) = 0`
  return allIn<HiddenScoreRow>(sql, text, { env: environmentId, runs, kind, id })
}

/** Scores of one name in the window, of runs with at least two; the latest first. */
async function readJudged(
  sql: Sql,
  environmentId: string,
  { name, from, to }: { name: string; from: number; to: number },
): Promise<JudgedRow[]> {
  const runs = `SELECT run FROM run_scores WHERE environment_id = :env AND scored_at >= :from AND scored_at < :to
    AND name = :name AND scores > 1 ORDER BY scored_at DESC LIMIT :most`
  const text = `SELECT r.run_id AS "runId", s.run, s.event_id AS "eventId", s.author_kind AS "authorKind",
      s.author_id AS "authorId", s.author_name AS "authorName", s.kind, s.number, s.category
    FROM (${runs}) given JOIN scores s ON s.environment_id = :env AND s.run = given.run AND s.name = :name
      JOIN runs r ON r.environment_id = :env AND r.id = s.run
    WHERE s.scored_at >= :from AND s.scored_at < :to ORDER BY s.scored_at DESC, s.id LIMIT :most`
  return sql.all<JudgedRow>(text, { env: environmentId, name, from, to, most: LIMITS.summedScores })
}
