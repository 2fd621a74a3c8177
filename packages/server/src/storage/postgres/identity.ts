/** Whether a connection leads to the database of this installation: after a failover it may be an empty one, or an old copy. */
import { DatabaseError, type ClientBase } from 'pg'

/** The message is for clients. */
export class OtherDatabase extends Error {}

/** What the store's database says of itself. */
export interface Identity {
  installation: string | null
  schema: number
}

const IDENTITY_QUERY = `SELECT (SELECT value FROM tacho.secrets WHERE name = 'installation') AS installation,
  (SELECT max(version) FROM tacho.migrations) AS schema`

const UNDEFINED_TABLE = '42P01'

/** Throws if the connection leads to another database than that of the installation. */
export async function checkIdentity(client: ClientBase, identity: Identity): Promise<void> {
  const fault = otherDatabase(await readIdentity(client), identity)
  if (fault !== null) throw new OtherDatabase(fault)
}

export async function readIdentity(client: ClientBase): Promise<Identity | null> {
  try {
    return (await client.query<Identity>(IDENTITY_QUERY)).rows[0] ?? null
  } catch (error) {
    if (error instanceof DatabaseError && error.code === UNDEFINED_TABLE) return null
    throw error
  }
}

export function otherDatabase(found: Identity | null, { installation, schema }: Identity): string | null {
  if (found === null || found.installation === null)
    return 'The database has no store of this installation: it is empty'
  if (found.installation !== installation) return 'The database belongs to another installation'
  if (found.schema < schema)
    return `The database has schema ${found.schema}, and this node knows ${schema}: it is an older copy`
  return null
}
