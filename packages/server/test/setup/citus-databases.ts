/** Databases for tests on a Citus cluster. Citus belongs to one database, so each needs its own cluster on the machines. */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { distributeStore } from '../../src/storage/postgres/prepare.ts'
import { administer, withDatabase } from './administer.ts'

interface Node {
  host: string
  port: number
  isCoordinator: boolean
  holdsShards: boolean
}

const NODES = `SELECT nodename AS host, nodeport AS port, groupid = 0 AS "isCoordinator", shouldhaveshards AS "holdsShards"
  FROM pg_dist_node WHERE noderole = 'primary' AND isactive ORDER BY groupid`

/** Fewer than the default of 32, because a store is made of many tables and every shard is one more. */
const SHARDS = 4

/** Each holds a distributed store. The nodes are those of the given database, reached by their addresses in it. */
export async function citusDatabases(given: string) {
  const nodes = await administer<Node>(given, NODES)
  const workers = nodes
    .filter(({ isCoordinator }) => !isCoordinator)
    .map(({ host, port }) => withHost(given, host, port))

  async function create() {
    const name = `tacho_test_${randomBytes(8).toString('hex')}`
    const url = withDatabase(given, name)
    const dropAt = (server: string) => administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    // The coordinator first: it holds connections to the others.
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
      await distributeStore(url)
      return { url, drop }
    } catch (error) {
      await drop()
      throw error
    }
  }

  return { create, close: async () => undefined }
}

/** The statements with which a node joins the cluster of a new database. */
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
