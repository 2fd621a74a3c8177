/**
 * Unique keys must begin with an environment or a workspace, with few exceptions. An import chooses ids, and clients
 * choose texts, so such a key must not be shared between tenants.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { EXPORTED_TABLES } from '../../src/storage/data/exports.ts'

/** A unique key of a table, without numbers that the store gives (`INTEGER PRIMARY KEY` in SQLite). */
export interface UniqueKey {
  table: string
  first: string
}

const TENANT = new Set(['environment_id', 'environment', 'workspace_id'])

const PEOPLE = 'people and their credentials: the service makes the ids, and addresses are unique in the installation'
const MADE_HERE = 'the service makes the ids, and no import brings rows'

/**
 * Tables that are keyed by an id which no caller chooses: the files that make the ids, and the requests that cause
 * rows. `assertMadeHere` checks the rest.
 */
const MADE_IDS: Readonly<Record<string, { files: string[]; routes: (keyof typeof OPERATOR_ROUTES)[] }>> = {
  alerts: { files: ['http/messages/alerts.ts'], routes: ['createAlert', 'changeAlert'] },
  simulations: { files: ['http/policies/simulations.ts'], routes: ['createSimulation'] },
  webhooks: { files: ['http/messages/webhooks.ts'], routes: ['createWebhook', 'changeWebhook'] },
  webhook_deliveries: {
    files: ['http/messages/webhooks.ts', 'storage/sql/messages/deliveries.ts'],
    routes: ['createWebhook', 'changeWebhook'],
  },
  audit_log: { files: ['storage/people/operators.ts'], routes: [] },
}

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
  ended_operators: PEOPLE,
  directory_people: PEOPLE,
  directory_groups: PEOPLE,
  directory_members: PEOPLE,
  operator_sessions: PEOPLE,
  operator_second_factors: PEOPLE,
  sign_in_challenges: PEOPLE,
  slack_links: PEOPLE,
  notified_browsers: PEOPLE,
  quiet_hours: PEOPLE,
  idempotency_keys: 'begins with the actor, whose id the service makes',
  ...Object.fromEntries(Object.keys(MADE_IDS).map((table) => [table, MADE_HERE])),
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

/**
 * No id of the tables that are keyed by it alone comes from outside. Each is a UUIDv7 with 62 random bits, so nobody
 * can take the id of another tenant; no import brings such a row; no request that makes one has a field for its id; and every
 * statement names the tenant too, so that a foreign id finds nothing.
 */
export function assertMadeHere(): void {
  const imported = new Set<string>(Object.values(EXPORTED_TABLES).map(({ name }) => name))
  for (const table of Object.keys(EXEMPT)) assert.ok(!imported.has(table), `${table} is imported`)
  const sources = globSync('**/*.ts', { cwd: SOURCES, exclude: ['**/migrations', 'copy'] }).map((file) => ({
    file,
    source: readFileSync(path.join(SOURCES, file), 'utf8'),
  }))
  for (const [table, { files, routes }] of Object.entries(MADE_IDS)) {
    for (const file of files) {
      const source = readFileSync(path.join(SOURCES, '..', file), 'utf8')
      // The bytes must be random; tests may pass others.
      assert.match(source, /\buuidv7\(\w+(, randomBytes)?\)/, `${file} makes ids of ${table}`)
      // An id must not come from a request.
      assert.doesNotMatch(source, /\bid: (body|query|params)\b/, file)
    }
    for (const name of routes) {
      const fields = (OPERATOR_ROUTES[name] as { body?: { properties?: object } }).body?.properties ?? {}
      assert.ok(!Object.hasOwn(fields, 'id'), `${name} has an id`)
    }
    let own = 0
    for (const { file, source } of sources) {
      // An upsert on the id could change the row of another tenant.
      assert.doesNotMatch(source, new RegExp(`INTO ${table}\\b[^\`']*ON CONFLICT`), file)
      assert.doesNotMatch(source, new RegExp(`insertRows\\(\\w+, '${table}',[^\n]*ON CONFLICT`), file)
      for (const text of statementsIn(source)) {
        if (!new RegExp(`\\b(FROM|UPDATE|JOIN) ${table}\\b`).test(text)) continue
        own += 1
        assert.ok(NAMES_TENANT.test(text) || READS_ALL[file] === text, `${file}: ${text}`)
      }
    }
    assert.ok(own > 0, table)
  }
}

const NAMES_TENANT = /\bWHERE (?:[^()]* AND )?(?:environment_id = :env|workspace_id = :workspace(?:Id)?)\b/
/** The audit log of the installation has all workspaces; that of a workspace begins with it. */
const READS_ALL: Readonly<Record<string, string>> = {
  'sql/people/audit.ts': 'SELECT ${COLUMNS} FROM audit_log WHERE ${conditionsGiven:group} ORDER BY id DESC',
}

/** Statements and their inner SELECTs separately, with the conditions from constants of the file. */
function statementsIn(source: string): string[] {
  return [...source.matchAll(STATEMENT)].flatMap(([quoted]) => {
    const text = quoted.slice(1, -1).replaceAll(/\$\{(\w+)(?:\.join\(' AND '\))?\}/g, (whole, name: string) => {
      const [, first] = new RegExp(`const ${name} = \\[?['\`]([^'\`]*)['\`]`).exec(source) ?? []
      return first ?? whole
    })
    return parts(text.replaceAll(/\s+/g, ' '))
  })
}

function parts(text: string): string[] {
  const inner = /\(([^()]*)\)/.exec(text)
  if (!inner) return [text]
  const [group, content = ''] = inner
  const rest = parts(text.replace(group, () => ':group'))
  return /^\s*SELECT\b/.test(content) ? [content.trim(), ...rest] : rest
}

/** Matches a quoted statement. */
const STATEMENT = /`(?:SELECT|UPDATE|DELETE|INSERT)\b[^`]*`|'(?:SELECT|UPDATE|DELETE|INSERT)\b[^']*'/g
