/** A Citus cluster distributes the tables whose environment_id is a uuid: all rows of a tenant are on one machine. */
import type { Client } from 'pg'
import { StoreRefused } from '../engine/store.ts'
import { SCHEMA } from './connections.ts'

const DATA_TABLES = `SELECT c.relname AS name FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'environment_id' AND a.atttypid = 'uuid'::regtype
  WHERE c.relnamespace = '${SCHEMA}'::regnamespace AND c.relkind = 'r' ORDER BY c.relname`

const FIRST = 'runs'

export async function dataTables(client: Pick<Client, 'query'>): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(DATA_TABLES)
  return [FIRST, ...rows.map(({ name }) => name).filter((name) => name !== FIRST)]
}

export function distribution(table: string): string {
  const beside = table === FIRST ? 'none' : `${SCHEMA}.${FIRST}`
  return `SELECT create_distributed_table('${SCHEMA}.${table}', 'environment_id', colocate_with => '${beside}')`
}

export async function distribute(client: Pick<Client, 'query'>): Promise<string[]> {
  if (!(await isCitus(client))) {
    throw new StoreRefused('The database has no Citus extension. Run CREATE EXTENSION citus.')
  }
  const distributed = await distributedTables(client)
  const due = (await dataTables(client)).filter((table) => !distributed.includes(table))
  for (const table of due) await client.query(distribution(table))
  return due
}

export async function distributeNew(client: Pick<Client, 'query'>): Promise<void> {
  if ((await isCitus(client)) && (await distributedTables(client)).includes(FIRST)) await distribute(client)
}

async function isCitus(client: Pick<Client, 'query'>): Promise<boolean> {
  return (await client.query("SELECT 1 FROM pg_extension WHERE extname = 'citus'")).rows.length > 0
}

async function distributedTables(client: Pick<Client, 'query'>): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
      WHERE c.relnamespace = '${SCHEMA}'::regnamespace`,
  )
  return rows.map(({ name }) => name)
}
