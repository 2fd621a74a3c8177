/**
 *   (none) --stop--> in effect --resume--> ended; a later stop of the same scope is a new one
 *
 * A stop in effect is a policy of the served configuration only. It has no version, deployment or publication.
 * Both transitions lock the configuration, as publications do, so neither loses what the other wrote.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { CONDITION_CHARS, stopCondition, type NewStop, type StopMade, type StopRow } from '../../policies/policies.ts'
import { write, type Sql } from '../engine/sql.ts'
import { growRevision } from '../engine/revision.ts'
import { insertRows } from '../engine/rows.ts'
import { textKey } from '../engine/keys.ts'
import { insertAudit } from '../people/audit.ts'
import { findRun } from '../runs/runs.ts'
import { findEnvironment } from '../tenants/workspaces.ts'
import { keepConfiguration, lockConfiguration } from './configurations.ts'
import { STOP_COLUMNS, stopsInEffect, toStopRow } from './stops.ts'

/** Maximum number of other names of a target. */
const NAMES_MAX = 100

export const stopAndResumeActs = write({ stop, resume })

async function stop(sql: Sql, asked: NewStop, audit: AuditEntry[]): Promise<StopMade> {
  const { environmentId, scope, target } = asked
  const env = environmentId
  if ((await findEnvironment(sql, env)) === null) return { outcome: 'no_environment' }
  const { publication } = await lockConfiguration(sql, env)
  const known = await namesOf(sql, asked)
  const inEffect = await stopsInEffect(sql, env)
  const same = inEffect.find((one) => one.scope === scope && one.target === target)
  const isKnown = scope === 'environment' || known.length > 0
  if (same !== undefined) return { outcome: 'existing', stop: same, isKnown }
  if (inEffect.length >= LIMITS.stops) return { outcome: 'too_many' }
  const needed = known.filter(({ isReported }) => !isReported).map(({ name }) => name)
  const names = [...new Set([target, ...needed, ...known.map(({ name }) => name)])].filter((name) => name !== '')
  const needs = new Set([target, ...needed])
  const fits = () => names.length <= NAMES_MAX && stopCondition({ scope, names }).length <= CONDITION_CHARS
  while (names.length > needs.size && !fits()) names.pop()
  // A stop with only some names would not stop the others.
  if (!fits() && names.length > 1) return { outcome: 'too_many_names' }
  const row: StopRow = { ...asked, names, resumedAt: null, resumedBy: null, resumeReason: null }
  await insertRows(sql, 'stops', [row])
  const oldest = `DELETE FROM stops WHERE environment_id = :env AND resumed_at IS NOT NULL AND id <
    (SELECT id FROM stops WHERE environment_id = :env ORDER BY id DESC LIMIT 1 OFFSET :kept)`
  await sql.run(oldest, { env, kept: LIMITS.keptStops - 1 })
  await keepConfiguration(sql, env, publication, 'stored')
  await insertAudit(sql, audit)
  await growRevision(sql)
  return { outcome: 'stopped', stop: row, isKnown }
}

/** Null: the environment has no such stop. A stop that has ended stays unchanged. */
async function resume(
  sql: Sql,
  environmentId: string,
  id: string,
  { at, by, reason }: { at: number; by: string; reason: string | null },
  audit: AuditEntry[],
): Promise<{ outcome: 'resumed' | 'ended'; stop: StopRow } | null> {
  const { publication } = await lockConfiguration(sql, environmentId)
  const end = `UPDATE stops SET resumed_at = :at, resumed_by = :by, resume_reason = :reason
    WHERE environment_id = :env AND id = :id AND resumed_at IS NULL RETURNING ${STOP_COLUMNS}`
  const params = { env: environmentId, id }
  const ended = await sql.get<object>(end, { ...params, at, by, reason })
  if (ended === null) {
    const row = await sql.get<object>(
      `SELECT ${STOP_COLUMNS} FROM stops WHERE environment_id = :env AND id = :id`,
      params,
    )
    return row && { outcome: 'ended', stop: toStopRow(row) }
  }
  await keepConfiguration(sql, environmentId, publication, 'stored')
  await insertAudit(sql, audit)
  await growRevision(sql)
  return { outcome: 'resumed', stop: toStopRow(ended) }
}

/** `isReported`: clients that report this name also report the target. */
interface KnownName {
  name: string
  isReported: boolean
}

/**
 * Names that clients may report for the target, as far as it has recorded; an operator may use the name that the
 * console shows.
 */
async function namesOf(sql: Sql, { environmentId: env, scope, target }: NewStop): Promise<KnownName[]> {
  switch (scope) {
    case 'environment':
      return []
    case 'agent': {
      const text = `SELECT COALESCE(external_id, name) AS name, CASE WHEN name = :target THEN 1 ELSE 0 END AS reported
        FROM agents WHERE environment_id = :env
        AND (external_id = :target OR name = :target OR display_name = :target OR CAST(id AS TEXT) = :target)
        ORDER BY reported LIMIT ${NAMES_MAX + 1}`
      const rows = await sql.all<{ name: string; reported: number }>(text, { env, target })
      return rows.map(({ name, reported }) => ({ name, isReported: reported === 1 || name === target }))
    }
    case 'session': {
      const text = 'SELECT id FROM runs WHERE environment_id = :env AND session_key = :key LIMIT 1'
      return (await sql.get(text, { env, key: textKey(target) })) === null ? [] : [{ name: target, isReported: true }]
    }
    case 'run': {
      const run = await findRun(sql, env, target)
      return run === null ? [] : [{ name: run.runId, isReported: run.runId === target }]
    }
  }
}
