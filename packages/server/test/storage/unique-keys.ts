/**
 * Which unique keys may begin with something else than an environment or a workspace. An import chooses ids, and clients
 * choose texts, so such a key must not be shared between tenants.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** A unique key of a table, without numbers that the store gives (`INTEGER PRIMARY KEY` in SQLite). */
export interface UniqueKey {
  table: string
  first: string
}

const TENANT = new Set(['environment_id', 'environment', 'workspace_id'])

const PEOPLE = 'people and their credentials: the service makes the ids, and addresses are unique in the installation'
const MADE_HERE = 'the service makes the ids, and no import brings rows'

const EXEMPT: Readonly<Record<string, string>> = {
  control: 'one row',
  secrets: 'of the installation',
  migrations: 'the schema',
  nodes: 'processes of the installation',
  copies: 'a copy into this store',
  workspaces: 'looked up to find the tenant; names are unique in the installation',
  environments: 'looked up to find the tenant',
  environment_numbers: 'the number of an environment',
  api_keys: 'looked up to find the tenant',
  operator_tokens: PEOPLE,
  operators: PEOPLE,
  operator_roles: PEOPLE,
  operator_invitations: PEOPLE,
  operator_accounts: PEOPLE,
  operator_sessions: PEOPLE,
  operator_second_factors: PEOPLE,
  sign_in_challenges: PEOPLE,
  idempotency_keys: 'begins with the actor, whose id the service makes',
  audit_log: MADE_HERE,
  alerts: MADE_HERE,
  simulations: MADE_HERE,
  webhooks: MADE_HERE,
  webhook_deliveries: MADE_HERE,
  search_words_config: 'of FTS5',
  search_words_idx: 'of FTS5',
}

export function assertTenantsFirst(keys: readonly UniqueKey[]): void {
  const shared = keys.filter(({ table, first }) => !TENANT.has(first) && !Object.hasOwn(EXEMPT, table))
  assert.deepEqual(shared, [], 'a unique key of tenant data must begin with its environment or workspace')
}

const SOURCES = path.join(import.meta.dirname, '../../src/storage')
/** Conflicts on other columns, all in tables that are exempt. */
const OTHER_TARGETS = new Set([
  'id',
  'email',
  'name',
  'place',
  'scope, operator_id',
  'actor_kind, actor_id, idempotency_key',
])

/** Every ON CONFLICT of the storage begins with an environment or a workspace, except those of exempt tables. */
export function assertConflictsOfTenants(): void {
  for (const file of globSync('**/*.ts', { cwd: SOURCES })) {
    const text = readFileSync(path.join(SOURCES, file), 'utf8')
    for (const [, columns = ''] of text.matchAll(/ON CONFLICT \(([^)]*)\)/g)) {
      const [first = ''] = columns.split(',')
      assert.ok(TENANT.has(first.trim()) || OTHER_TARGETS.has(columns), `${file}: ON CONFLICT (${columns})`)
    }
  }
}
