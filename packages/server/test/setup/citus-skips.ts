/** Why some tests cannot hold on a Citus cluster, for their option `skip`. Each is false on PostgreSQL. */
import { isCitus } from './administer.ts'

const given = process.env['TACHO_TEST_DATABASE_URL']
const citus = given !== undefined && (await isCitus(given))

export const NO_TRIGGERS = citus && 'Citus refuses triggers on distributed tables; the test fails inserts with one'
export const NESTED_PLANS = citus && 'EXPLAIN on Citus nests the plans of shards, whose tables have other names'
