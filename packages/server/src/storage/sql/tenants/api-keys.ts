import { lookup, read, write, countOf, selectList, type Sql } from '../engine/sql.ts'
import type { AuditEntry } from '../../people/operators.ts'
import { mapPage, type Page, type PageById } from '../../engine/page.ts'
import {
  keyFamilyOf,
  NONE_LOST,
  type ApiKeyChange,
  type ApiKeyRotation,
  type ApiKeyRow,
  type LostRequests,
  type LostRequestsSum,
  type SpoolTroubleRow,
  type SpoolTroubleSum,
  type NewApiKeyRow,
} from '../../tenants/tenants.ts'
import { findEnvironment } from './workspaces.ts'
import { auditControl } from '../engine/revision.ts'
import { allIn, insertRows, stored, withJson } from '../engine/rows.ts'
import { damagedError, nameOf, rowSum, takeSum, withSum } from '../engine/row-sums.ts'

export const apiKeysActs = {
  ...lookup({ findApiKey }),
  ...read({ listApiKeys, listValidApiKeys, sumLostRequests, readSpoolTrouble }),
  ...write({ createApiKey, revokeApiKey, changeApiKey, rotateApiKey, addLostRequests, noteSpoolTrouble }),
}

const OTHERS = `${withSum('api_keys', 'k.')}, ${selectList(
  `name requests_per_second created_at expires_at replaced_by last_used_at lost_requests last_lost_at last_lost_reason
    creator_kind creator_id`,
  'k.',
)}`
const COLUMNS = `${OTHERS}, k.revoked_at AS "revokedAt"`

const NAMED_KEYS =
  'FROM api_keys k JOIN environments e ON e.id = k.environment_id JOIN workspaces w ON w.id = e.workspace_id'

const REMEDY = 'Revoke it and create another one, or restore a backup'
const parsed = withJson<ApiKeyRow>('scopes', 'allowedAddresses')

/** A damaged key can be listed and revoked, but allows nothing. */
function toRow(sql: Sql, row: object): ApiKeyRow {
  const isIntact = takeSum(sql, 'api_keys', row, (row as ApiKeyRow).environmentId)
  return isIntact ? parsed(row) : { ...(row as ApiKeyRow), scopes: [], allowedAddresses: [], damaged: true }
}

function assertIntact<Key extends ApiKeyRow>(key: Key): Key {
  if (key.damaged) throw damagedError(nameOf('api_keys', key), REMEDY)
  return key
}

async function createApiKey(sql: Sql, key: NewApiKeyRow, audit: AuditEntry[]): Promise<'created' | 'no_environment'> {
  if ((await findEnvironment(sql, key.environmentId)) === null) return 'no_environment'
  await insertRows(sql, 'api_keys', [key])
  await auditControl(sql, audit)
  return 'created'
}

async function listApiKeys(sql: Sql, environmentId: string, page: PageById): Promise<Page<ApiKeyRow>> {
  const text = `SELECT ${COLUMNS} FROM api_keys k WHERE k.environment_id = :env AND k.id > :after ORDER BY k.id`
  const params = { env: environmentId, after: page.after ?? '' }
  return mapPage(await sql.page<object>(text, params, page.limit), (row) => toRow(sql, row))
}

/** Searches all environments: the tenant is not yet known. An archived environment or workspace revokes its keys. */
async function findApiKey(sql: Sql, id: string): Promise<(ApiKeyRow & { workspaceId: string }) | null> {
  const text = `SELECT ${OTHERS}, COALESCE(k.revoked_at, e.archived_at, w.archived_at) AS "revokedAt",
      e.workspace_id AS "workspaceId"
    ${NAMED_KEYS} WHERE k.id = :id`
  const row = await sql.get<{ workspaceId: string }>(text, { id })
  return row && { ...assertIntact(toRow(sql, row)), workspaceId: row.workspaceId }
}

/** Returns those of the keys that are valid by the rules of `findApiKey`. */
async function listValidApiKeys(sql: Sql, environmentId: string, ids: string[], now: number): Promise<string[]> {
  const text = `SELECT k.id ${NAMED_KEYS} WHERE k.environment_id = :env AND k.id IN (:ids)
    AND COALESCE(k.revoked_at, e.archived_at, w.archived_at) IS NULL AND (k.expires_at IS NULL OR k.expires_at > :now)`
  return (await allIn<{ id: string }>(sql, text, { env: environmentId, ids, now })).map(({ id }) => id)
}

async function revokeApiKey(sql: Sql, environmentId: string, id: string, now: number, audit: AuditEntry[]) {
  const revoke = 'UPDATE api_keys SET revoked_at = :now WHERE environment_id = :env AND id = :id AND revoked_at IS NULL'
  if ((await sql.run(revoke, { now, env: environmentId, id })) === 1) {
    await auditControl(sql, audit)
  }
  return readApiKey(sql, environmentId, id)
}

async function readApiKey(sql: Sql, environmentId: string, id: string): Promise<ApiKeyRow | null> {
  const text = `SELECT ${COLUMNS} FROM api_keys k WHERE k.environment_id = :env AND k.id = :id`
  const row = await sql.get<object>(text, { env: environmentId, id })
  return row && toRow(sql, row)
}

/** Locks the row, so that the second of two concurrent changes sees the first. */
async function holdApiKey(
  sql: Sql,
  environmentId: string,
  id: string,
  now: number,
): Promise<ApiKeyRow | 'ended' | null> {
  await sql.run('UPDATE api_keys SET name = name WHERE environment_id = :env AND id = :id', { env: environmentId, id })
  const key = await readApiKey(sql, environmentId, id)
  if (key === null) return null
  const { revokedAt, expiresAt, replacedBy } = assertIntact(key)
  return revokedAt !== null || replacedBy !== null || (expiresAt !== null && expiresAt <= now) ? 'ended' : key
}

async function changeApiKey(
  sql: Sql,
  environmentId: string,
  id: string,
  change: ApiKeyChange,
  now: number,
  audit: AuditEntry[],
): Promise<ApiKeyRow | 'widened' | 'ended' | null> {
  const key = await holdApiKey(sql, environmentId, id, now)
  if (key === null || key === 'ended') return key
  if (change.scopes?.some((scope) => !key.scopes.includes(scope))) return 'widened'
  const changedColumns = Object.entries(change).filter(([, value]) => value !== undefined)
  const changed: ApiKeyRow = { ...key, ...Object.fromEntries(changedColumns) }
  const { name, expiresAt, requestsPerSecond } = changed
  const [scopes, allowedAddresses] = [stored(changed.scopes), stored(changed.allowedAddresses)]
  const text = `UPDATE api_keys SET name = :name, scopes = :scopes, expires_at = :expiresAt, allowed_addresses = :allowedAddresses,
    requests_per_second = :requestsPerSecond, row_sum = :sum WHERE environment_id = :env AND id = :id`
  const sum = rowSum('api_keys', { ...changed, scopes, allowedAddresses })
  const values = { name, scopes, expiresAt, requestsPerSecond, allowedAddresses, sum }
  await sql.run(text, { ...values, env: environmentId, id })
  await auditControl(sql, audit)
  return readApiKey(sql, environmentId, id)
}

async function rotateApiKey(
  sql: Sql,
  environmentId: string,
  id: string,
  { now, oldValidUntil, expiresAt, ...key }: ApiKeyRotation,
  audit: AuditEntry[],
): Promise<ApiKeyRow | 'ended' | null> {
  const old = await holdApiKey(sql, environmentId, id, now)
  if (old === null || old === 'ended') return old
  const expires = expiresAt === undefined ? old.expiresAt : expiresAt
  const added = {
    ...old,
    family: keyFamilyOf(old),
    ...key,
    createdAt: now,
    expiresAt: expires,
    replacedBy: null,
    lastUsedAt: null,
    ...NONE_LOST,
  }
  await insertRows(sql, 'api_keys', [added])
  const until = Math.min(old.expiresAt ?? oldValidUntil, oldValidUntil)
  const text = 'UPDATE api_keys SET expires_at = :until, replaced_by = :newId WHERE environment_id = :env AND id = :id'
  await sql.run(text, { until, newId: key.id, env: environmentId, id })
  await auditControl(sql, audit)
  return added
}

async function addLostRequests(sql: Sql, lost: LostRequests[]): Promise<void> {
  const text = `UPDATE api_keys SET lost_requests = lost_requests + :requests, last_lost_at = :at,
    last_lost_reason = :reason WHERE environment_id = :env AND id = :keyId`
  // Sorted, so that two nodes cannot deadlock.
  for (const { environmentId: env, keyId, requests, at, reason } of lost.toSorted((a, b) =>
    a.keyId < b.keyId ? -1 : 1,
  )) {
    await sql.run(text, { requests, at, reason, env, keyId })
  }
}

async function noteSpoolTrouble(sql: Sql, spools: SpoolTroubleRow[]): Promise<void> {
  const text =
    'UPDATE api_keys SET spool_trouble = :trouble, spool_trouble_at = :at WHERE environment_id = :env AND id = :keyId'
  // Sorted, so that two nodes cannot deadlock.
  for (const { environmentId: env, keyId, trouble, at } of spools.toSorted((a, b) => (a.keyId < b.keyId ? -1 : 1))) {
    await sql.run(text, { trouble, at, env, keyId })
  }
}

/** A full scan is fine: keys are few, and only `tacho doctor` asks. */
async function readSpoolTrouble(sql: Sql, since: number): Promise<SpoolTroubleSum> {
  const keys = await countOf(sql, 'SELECT COUNT(*) AS count FROM api_keys WHERE spool_trouble_at >= :since', { since })
  const latest = await sql.get<NonNullable<SpoolTroubleSum['latest']>>(
    `SELECT k.name AS "keyName", w.name AS "workspaceName", e.name AS "environmentName", k.spool_trouble_at AS at,
      k.spool_trouble AS trouble
    ${NAMED_KEYS} WHERE k.spool_trouble_at >= :since ORDER BY k.spool_trouble_at DESC, k.id LIMIT 1`,
    { since },
  )
  return { keys, latest }
}

/** A full scan is fine: keys are few, and only `tacho doctor` asks. */
async function sumLostRequests(sql: Sql, since: number): Promise<LostRequestsSum> {
  const lost = 'FROM api_keys k WHERE k.last_lost_at >= :since'
  const sums = await sql.get<{ keys: number; requests: number }>(
    `SELECT COUNT(*) AS keys, COALESCE(SUM(k.lost_requests), 0) AS requests ${lost}`,
    { since },
  )
  const latest = await sql.get<NonNullable<LostRequestsSum['latest']>>(
    `SELECT k.name AS "keyName", w.name AS "workspaceName", e.name AS "environmentName", k.last_lost_at AS at,
      k.last_lost_reason AS reason
    ${NAMED_KEYS} WHERE k.last_lost_at >= :since ORDER BY k.last_lost_at DESC, k.id LIMIT 1`,
    { since },
  )
  return { keys: sums?.keys ?? 0, requests: Number(sums?.requests ?? 0), latest }
}
