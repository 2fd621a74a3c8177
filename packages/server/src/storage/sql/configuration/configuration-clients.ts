import type { ClientStanding } from '@tacho/contract/operator/configuration-client.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import {
  SILENT_AFTER_MS,
  TAKES_UP_MS,
  type ConfigurationClientRow,
  type ConfigurationClients,
  type ConfigurationClientSeen,
  type ConfigurationClientsPage,
} from '../../configuration-clients.ts'
import { read, write } from '../act.ts'
import { withoutErasedClients } from '../erasure/erased-keys.ts'
import { insertRows } from '../rows/insert-rows.ts'
import type { Sql, SqlValue } from '../sql.ts'
import { readRevision } from './configurations.ts'

export const configurationClientsActs = {
  writeConfigurationClients: write(writeConfigurationClients),
  listConfigurationClients: read(listConfigurationClients),
}

const LATEST_WINS = `ON CONFLICT (environment_id, identified_by, client_id)
  DO UPDATE SET revision = excluded.revision, key_id = excluded.key_id, seen_at = excluded.seen_at
  WHERE c.seen_at <= excluded.seen_at`

/**
 * Keeps the latest of each client. Deletes the clients last seen before `deleteBefore`, and the oldest beyond
 * LIMITS.configurationClients.
 */
async function writeConfigurationClients(
  sql: Sql,
  environmentId: string,
  clients: readonly ConfigurationClientSeen[],
  deleteBefore: number,
): Promise<void> {
  const rows = (await withoutErasedClients(sql, environmentId, clients)).map(
    ({ identifiedBy, clientId, keyId, revision, seenAt }) => ({
      environment_id: environmentId,
      identified_by: identifiedBy,
      client_id: clientId,
      key_id: keyId,
      revision,
      seen_at: seenAt,
    }),
  )
  // Every process locks the rows in this order.
  rows.sort((a, b) => compare(a.identified_by, b.identified_by) || compare(a.client_id, b.client_id))
  await insertRows(sql, 'configuration_clients AS c', rows, LATEST_WINS)
  await sql.run('DELETE FROM configuration_clients WHERE environment_id = ? AND seen_at < ?', [
    environmentId,
    deleteBefore,
  ])
  const oldest = `DELETE FROM configuration_clients WHERE environment_id = ? AND
    (seen_at, identified_by, client_id) < (SELECT k.seen_at, k.identified_by, k.client_id
      FROM configuration_clients k WHERE k.environment_id = ?
      ORDER BY k.seen_at DESC, k.identified_by DESC, k.client_id DESC LIMIT 1 OFFSET ?)`
  await sql.run(oldest, [environmentId, environmentId, LIMITS.configurationClients - 1])
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

const STANDING = `CASE WHEN seen_at < ? THEN 'SILENT' WHEN revision = ? THEN 'CURRENT'
  WHEN seen_at > ? THEN 'BEHIND' ELSE 'UPDATING' END`

/** By client id; clients that sent an id come first. */
async function listConfigurationClients(
  sql: Sql,
  environmentId: string,
  standing: ClientStanding | undefined,
  { limit, after }: ConfigurationClientsPage,
): Promise<ConfigurationClients> {
  const revision = await readRevision(sql, environmentId)
  const changedAt = await readTime(
    sql,
    `SELECT max(at) AS at FROM deployment_changes WHERE environment_id = ?
      AND publication = (SELECT publication FROM configurations WHERE environment_id = ?)`,
    [environmentId, environmentId],
  )
  const newest = await readTime(sql, 'SELECT max(seen_at) AS at FROM configuration_clients WHERE environment_id = ?', [
    environmentId,
  ])
  // Compared with each other, not with the clock: processes write what they have seen up to a minute later.
  const times = [newest - SILENT_AFTER_MS, revision, changedAt + TAKES_UP_MS]
  const counts = await sql.all<ConfigurationClients['counts'][number]>(
    `SELECT standing, count(*) AS clients FROM
      (SELECT ${STANDING} AS standing FROM configuration_clients WHERE environment_id = ?) page GROUP BY standing`,
    [...times, environmentId],
  )
  const further = after ? ' AND (identified_by, client_id) > (?, ?)' : ''
  const chosen = standing === undefined ? '' : 'WHERE standing = ?'
  const page = await sql.page<ConfigurationClientRow>(
    `SELECT * FROM (SELECT identified_by AS "identifiedBy", client_id AS "clientId", key_id AS "keyId", revision,
        seen_at AS "seenAt", ${STANDING} AS standing
      FROM configuration_clients WHERE environment_id = ?${further}) page ${chosen}
      ORDER BY "identifiedBy", "clientId"`,
    [
      ...times,
      environmentId,
      ...(after ? [after.identifiedBy, after.clientId] : []),
      ...(standing === undefined ? [] : [standing]),
    ],
    limit,
  )
  return { revision, counts, ...page }
}

async function readTime(sql: Sql, text: string, params: readonly SqlValue[]): Promise<number> {
  return (await sql.get<{ at: number | null }>(text, params))?.at ?? 0
}
