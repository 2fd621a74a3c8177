/** Databases for tests on a Citus cluster. A cluster consists of one database on each machine, so each test needs its own. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { distributeStore } from '../../src/storage/postgres/migrate.ts'
import { administer, withDatabase } from './administer.ts'

interface Node {
  host: string
  port: number
  isCoordinator: boolean
  holdsShards: boolean
}

const NODES = `SELECT nodename AS host, nodeport AS port, groupid = 0 AS "isCoordinator", shouldhaveshards AS "holdsShards"
  FROM pg_dist_node WHERE noderole = 'primary' AND isactive ORDER BY groupid`

/** Fewer than the default of 32, because a store has many tables, and each shard adds one. */
const SHARDS = 4

/** Databases with a distributed store, or without tables, on the nodes and at the addresses of the given database. */
export async function citusDatabases(given: string) {
  const nodes = await administer<Node>(given, NODES)
  const workers = nodes
    .filter(({ isCoordinator }) => !isCoordinator)
    .map(({ host, port }) => withHost(given, host, port))

  async function createEmpty() {
    const name = `tacho_test_${randomBytes(8).toString('hex')}`
    const url = withDatabase(given, name)
    const dropAt = (server: string) => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    // Drop the coordinator's database first, because it has connections to the others.
    const drop = async () => {
      await dropAt(given)
      await Promise.all(workers.map(dropAt))
    }
    try {
      for (const server of [given, ...workers]) {
        await administer(server, `CREATE DATABASE ${name}`)
        await administer(withDatabase(server, name), 'CREATE EXTENSION citus')
      }
      await administer(url, `ALTER DATABASE ${name} SET citus.shard_count = ${SHARDS}`, ...nodes.flatMap(joining))
      return { url, drop }
    } catch (error) {
      await drop()
      throw error
    }
  }

  async function create() {
    const empty = await createEmpty()
    try {
      await distributeStore(empty.url)
      return empty
    } catch (error) {
      await empty.drop()
      throw error
    }
  }

  return { create, createEmpty, close: async () => undefined }
}

/** The statements that add a node to the cluster of a new database. */
function joining({ host, port, isCoordinator, holdsShards }: Node): string[] {
  const address = `${pg.escapeLiteral(host)}, ${port}`
  return [
    isCoordinator ? `SELECT citus_set_coordinator_host(${address})` : `SELECT citus_add_node(${address})`,
    `SELECT citus_set_node_property(${address}, 'shouldhaveshards', ${holdsShards})`,
  ]
}

function withHost(given: string, host: string, port: number): string {
  const url = new URL(given)
  url.hostname = host
  url.port = String(port)
  return url.href
}
