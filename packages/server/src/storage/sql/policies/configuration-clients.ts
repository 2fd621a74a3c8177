import type { ClientStanding } from '@tacho/contract/policies/deployment.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import {
  ENDED,
  SILENT_AFTER_MS,
  TAKES_UP_MS,
  type ConfigurationClientRow,
  type ConfigurationClientSeen,
  type ConfigurationClientsPage,
} from '../../policies/deployments.ts'
import { read, write, selectList, type Sql } from '../engine/sql.ts'
import { withoutErasedClients } from '../data/erased-keys.ts'
import { insertRows } from '../engine/rows.ts'
import { readRevision } from './configurations.ts'

export const configurationClientsActs = {
  ...read({ listConfigurationClients }),
  ...write({ writeConfigurationClients }),
}

const LATEST_WINS = `ON CONFLICT (environment_id, identified_by, client_id)
  DO UPDATE SET revision = excluded.revision, key_id = excluded.key_id, seen_at = excluded.seen_at
  WHERE c.seen_at <= excluded.seen_at`

/** Deletes the clients last seen before `deleteBefore`, and the oldest beyond LIMITS.configurationClients. */
async function writeConfigurationClients(
  sql: Sql,
  environmentId: string,
  clients: readonly ConfigurationClientSeen[],
  deleteBefore: number,
): Promise<void> {
  const keptClients = await withoutErasedClients(sql, environmentId, clients)
  const rows = keptClients.map(({ identifiedBy, clientId, keyId, revision, seenAt }) => {
    return { environmentId, identifiedBy, clientId, keyId, revision, seenAt }
  })
  // Every process locks the rows in this order.
  const placeOf = ({ identifiedBy, clientId }: (typeof rows)[number]) => `${identifiedBy} ${clientId}`
  rows.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
  await insertRows(sql, 'configuration_clients AS c', rows, LATEST_WINS)
  const env = environmentId
  const silent = 'DELETE FROM configuration_clients WHERE environment_id = :env AND seen_at < :deleteBefore'
  await sql.run(silent, { env, deleteBefore })
  const oldest = `DELETE FROM configuration_clients WHERE environment_id = :env AND
    (seen_at, identified_by, client_id) < (SELECT k.seen_at, k.identified_by, k.client_id
      FROM configuration_clients k WHERE k.environment_id = :env
      ORDER BY k.seen_at DESC, k.identified_by DESC, k.client_id DESC LIMIT 1 OFFSET :kept)`
  await sql.run(oldest, { env, kept: LIMITS.configurationClients - 1 })
}

const COLUMNS = selectList('identified_by client_id key_id revision seen_at')
const STANDING = `CASE WHEN seen_at < :silent THEN 'SILENT' WHEN revision = :revision THEN 'CURRENT'
  WHEN seen_at > :behind THEN 'BEHIND' ELSE 'UPDATING' END`

/** Lists the clients that have not ended. `counts` covers all pages, and leaves out standings without clients. */
async function listConfigurationClients(
  sql: Sql,
  environmentId: string,
  standing: ClientStanding | undefined,
  { limit, after }: ConfigurationClientsPage,
) {
  const revision = await readRevision(sql, environmentId)
  const env = environmentId
  const latest = async (text: string) => (await sql.get<{ at: number | null }>(text, { env }))?.at ?? 0
  const changedAt = await latest(`SELECT max(at) AS at FROM deployment_changes WHERE environment_id = :env
    AND publication = (SELECT publication FROM configurations WHERE environment_id = :env)`)
  const stoppedAt = await latest(
    `SELECT max(COALESCE(resumed_at, stopped_at)) AS at FROM stops WHERE environment_id = :env`,
  )
  const labelledAt = await latest('SELECT changed_at AS at FROM tool_labels WHERE environment_id = :env')
  const newest = await latest('SELECT max(seen_at) AS at FROM configuration_clients WHERE environment_id = :env')
  // Compares clients with each other, not with the clock: processes write up to a minute late what they have seen.
  const of = {
    env,
    ended: ENDED,
    silent: newest - SILENT_AFTER_MS,
    revision,
    behind: Math.max(changedAt, stoppedAt, labelledAt) + TAKES_UP_MS,
  }
  const counts = await sql.all<{ standing: ClientStanding; clients: number }>(
    `SELECT standing, count(*) AS clients FROM
      (SELECT ${STANDING} AS standing FROM configuration_clients WHERE environment_id = :env AND revision <> :ended) page GROUP BY standing`,
    of,
  )
  const further = after ? ' AND (identified_by, client_id) > (:identifiedBy, :clientId)' : ''
  const chosen = standing === undefined ? '' : 'WHERE standing = :standing'
  const page = await sql.page<ConfigurationClientRow>(
    `SELECT * FROM (SELECT ${COLUMNS}, ${STANDING} AS standing
      FROM configuration_clients WHERE environment_id = :env AND revision <> :ended${further}) page ${chosen}
      ORDER BY "identifiedBy", "clientId"`,
    { ...of, identifiedBy: after?.identifiedBy, clientId: after?.clientId, standing },
    limit,
  )
  return { revision, counts, ...page }
}
