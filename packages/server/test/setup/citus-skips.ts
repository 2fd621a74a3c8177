/**
 * Reasons to skip tests on a Citus cluster, for their option `skip`. Each is false on PostgreSQL.
 *
 * `TACHO_TEST_DATABASE_URL` is a database of the coordinator that knows its workers (`citus_add_node`). Each test store gets
 * a separate database on all machines, which the test drops again. The test connects to the workers at the addresses in
 * `pg_dist_node`, as the same user. Each database needs a background worker on each machine: `max_worker_processes` 64,
 * `max_connections` 300, `max_prepared_transactions` 600.
 */
import { isCitus } from './administer.ts'

const given = process.env['TACHO_TEST_DATABASE_URL']
const citus = given !== undefined && (await isCitus(given))

export const NO_TRIGGERS = citus && 'Citus refuses triggers on distributed tables; the test fails inserts with one'
export const NESTED_PLANS = citus && 'EXPLAIN on Citus nests the plans of shards, whose tables have other names'
