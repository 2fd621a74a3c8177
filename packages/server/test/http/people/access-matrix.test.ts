/**
 * Permissions for every row of the operator API: each role and token, with ids of its own workspace, of other workspaces, and
 * unknown ids. On both engines, because the store finds the rows.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type OperatorRoute, type Role, SCOPES } from '@tacho/contract/web/route.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import type { Answer } from '../../setup/service.ts'
import {
  addressOf,
  bodyOf,
  namingPlaces,
  OPERATOR_ROWS,
  populate,
  PUBLIC_ROWS,
  queryOf,
  samplesWith,
  type NamingPlace,
  type PopulatedTenant,
  type Row,
} from '../../setup/route-samples.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

type Ids = Record<string, string>

interface Estate extends EngineService {
  own: PopulatedTenant
  foreign: PopulatedTenant
  /** A token with this role in `own`; `foreign`: of the other workspace's owner; `installation`: of an installation owner. */
  tokenOf(who: Caller): Promise<string>
}

type Caller = Role | 'foreign' | 'installation'

/** Fewer than the refused changes that are logged per caller and minute. */
const USES_OF_A_TOKEN = 50

const estates = startOnBothEngines({ webhookNetworks: '127.0.0.0/8', operatorRateLimit: '100000' }, estateOf)

async function estateOf({ engine, service }: EngineService): Promise<Estate> {
  const [own, foreign] = [await populate(service, 'acme'), await populate(service, 'globex')]
  const newToken = async (who: Role | 'foreign') => {
    const path = `/workspaces/${(who === 'foreign' ? foreign : own).workspaceId}/tokens`
    const body = { name: who, role: who === 'foreign' ? 'owner' : who }
    const made = await whenFree(() => service.operator<{ token: string }>(path, { body }))
    assert.equal(made.status, 201, made.text)
    return made.body.token
  }
  const used = new Map<Caller, { uses: number; token: Promise<string> }>()
  const tokenOf = (who: Caller) => {
    if (who === 'installation') return Promise.resolve(service.operatorToken)
    let now = used.get(who)
    if (now === undefined || now.uses === USES_OF_A_TOKEN) used.set(who, (now = { uses: 0, token: newToken(who) }))
    now.uses += 1
    return now.token
  }
  return { engine, service, own, foreign, tokenOf }
}

const accessOf = ({ route }: Row) => (route as OperatorRoute).access
const rows = OPERATOR_ROWS.filter((row) => accessOf(row) !== 'anyone')
const TENANT = ['workspaceId', 'environmentId']
const paramsOf = ({ route }: Row) => [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
const namesTenant = (row: Row) => paramsOf(row).some((name) => TENANT.includes(name))

/** Unknown ids; parameters that are not ids stay. */
const unknown = ({ ids }: PopulatedTenant): Ids =>
  Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, name === 'version' ? id : randomUUID()]))
/** The caller's workspace, holding another workspace's objects. */
const within = ({ workspaceId, environmentId }: PopulatedTenant, ids: Ids): Ids => ({
  ...ids,
  workspaceId,
  environmentId,
})

interface Sample {
  body?: unknown
  query?: Record<string, string>
}

const sampleOfRow = ({ route }: Row): Sample => ({ body: bodyOf(route), query: queryOf(route) })

/** The status and the body. A successful stream never ends, so its body is empty. */
async function send(
  { service }: Estate,
  credential: Record<string, string>,
  row: Row,
  ids: Ids,
  { body, query }: Sample = sampleOfRow(row),
): Promise<[number, string]> {
  const { method } = row.route
  const reply = await whenFree(() => service.call(addressOf(row, ids, query), { method, headers: credential, body }))
  return [reply.status, reply.text]
}

const bearer = (token: string | undefined) => (token === undefined ? {} : { authorization: `Bearer ${token}` })

/** The status, and for errors the body without the parts that differ from request to request. */
async function ask(estate: Estate, token: string | undefined, row: Row, ids: Ids): Promise<[number, string]> {
  const [status, text] = await send(estate, bearer(token), row, ids)
  return [status, status < 400 ? '' : withoutIds(text, Object.values(ids))]
}

function withoutIds(text: string, ids: readonly string[]): string {
  const known = ids.reduce((left, id) => (id === '1' ? left : left.replaceAll(id, '<id>')), text)
  return known.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
}

/** Sends again while the server is at capacity: exports of other rows have all places, or the database is busy. */
async function whenFree<Reply extends Answer>(send: () => Promise<Reply>): Promise<Reply> {
  for (let pauseMs = 5; ; pauseMs = Math.min(2 * pauseMs, 160)) {
    const reply = await send()
    if (reply.status !== 503) return reply
    await wait(pauseMs)
  }
}

async function inParallel<Item>(of: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const waiting = of.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const item of waiting) await work(item)
    }),
  )
}

const forEachRow = inParallel<Row>

/** At the same time, because one engine's requests can run while the other's wait. */
const onEachEngine = (work: (estate: Estate) => Promise<void>) => Promise.all(estates.map(work))

const options = { timeout: 900_000 }

test('nothing is served without a valid credential', options, async () => {
  await onEachEngine(async (estate) => {
    await forEachRow(rows, async (row) => {
      for (const token of [undefined, `tacho-operator_${'0'.repeat(16)}_${'0'.repeat(64)}`]) {
        assert.equal((await ask(estate, token, row, estate.own.ids))[0], 401, row.name)
      }
    })
  })
})

test('another workspace, and its objects addressed through one’s own, look like missing ones', options, async () => {
  await onEachEngine(async (estate) => {
    const { engine, own, foreign, tokenOf } = estate
    await forEachRow(rows.filter(namesTenant), async (row) => {
      for (const role of ROLES) {
        const token = () => tokenOf(role)
        const other = await ask(estate, await token(), row, foreign.ids)
        assert.deepEqual(
          other,
          await ask(estate, await token(), row, unknown(foreign)),
          `${engine} ${row.name} as ${role}`,
        )
        assert.equal(other[0], 404, row.name)
        if (paramsOf(row).every((name) => TENANT.includes(name))) continue
        const named = await ask(estate, await token(), row, within(own, foreign.ids))
        const nobody = await ask(estate, await token(), row, within(own, unknown(foreign)))
        assert.deepEqual(named, nobody, `${engine} ${row.name} as ${role}, in their own workspace`)
      }
      // The other workspace's owner has no access to this one.
      const [status] = await ask(estate, await tokenOf('foreign'), row, own.ids)
      assert.equal(status, 404, row.name)
    })
    await stillThere(estate)
  })
})

/** Nothing of the other workspace was changed or deleted. */
async function stillThere(estate: Estate): Promise<void> {
  const reads = rows.filter((row) => row.route.method === 'GET' && namesTenant(row))
  await forEachRow(reads, async (row) => {
    const [status, text] = await ask(estate, await estate.tokenOf('foreign'), row, estate.foreign.ids)
    assert.equal(status, row.route.status, `${estate.engine} ${row.name}: ${text}`)
  })
}

test('every permitted role reads its own workspace', options, async () => {
  await onEachEngine(async (estate) => {
    await forEachRow(
      rows.filter((row) => row.route.method === 'GET' && namesTenant(row)),
      async (row) => {
        for (const role of ROLES.slice(ROLES.indexOf(accessOf(row) as Role))) {
          const [status, text] = await ask(estate, await estate.tokenOf(role), row, estate.own.ids)
          assert.equal(status, row.route.status, `${estate.engine} ${row.name} as ${role}: ${text}`)
        }
      },
    )
  })
})

test("a role below the endpoint's is rejected, the role itself is accepted", options, async () => {
  const order = [...ROLES, 'installation'] as const
  await onEachEngine(async (estate) => {
    await forEachRow(rows, async (row) => {
      const access = accessOf(row)
      if (access === 'signed-in' || access === 'anyone') return
      const needed = order.indexOf(access)
      // The ids are unknown, so nothing in the workspace changes.
      const ids = within(estate.own, unknown(estate.own))
      for (const role of order) {
        const [status] = await ask(estate, await estate.tokenOf(role), row, ids)
        const name = `${estate.engine} ${row.name} as ${role}: ${status}`
        if (order.indexOf(role) < needed) assert.equal(status, 403, name)
        else assert.ok(![401, 403].includes(status) && status < 500, name)
      }
    })
    await inUseAgain(estate)
  })
})

/** Restores what the rows archived: rows that archive and rows that restore ran at the same time. */
async function inUseAgain({ service, own }: Estate): Promise<void> {
  for (const path of [`/workspaces/${own.workspaceId}`, `/environments/${own.environmentId}`]) {
    const { status, text } = await service.operator(`${path}/restore`, { body: {} })
    assert.equal(status, 200, text)
  }
}

test('an endpoint below a workspace requires a role in that workspace', () => {
  // An owner of the installation has a role in every workspace. Others get 404 or 403 there, as the tests above show.
  const inWorkspace = (row: Row) => [...ROLES, 'installation'].includes(accessOf(row))
  for (const row of rows) {
    if (namesTenant(row)) assert.ok(inWorkspace(row), row.name)
    else assert.ok(!(ROLES as readonly string[]).includes(accessOf(row)), row.name)
  }
})

const clientOf = (apiKey: string) => ({ 'x-api-key': apiKey, 'x-service-client-id': 'globex' })

test('the public API requires a valid key with every scope of the endpoint', options, async () => {
  await onEachEngine(async ({ engine, service, own, ...rest }) => {
    const estate = { engine, service, own, ...rest }
    const { environmentId } = own
    const without = new Map(
      await Promise.all(
        SCOPES.map(async (scope) => {
          const scopes = SCOPES.filter((other) => other !== scope)
          return [scope, await service.newKey({ scopes, environmentId })] as const
        }),
      ),
    )
    await forEachRow(PUBLIC_ROWS, async (row) => {
      assert.ok(row.route.scopes.length > 0, row.name)
      const unknownKey = `tacho_${'0'.repeat(16)}_${'0'.repeat(64)}`
      for (const credential of [{}, clientOf(''), clientOf('x'), clientOf(unknownKey), bearer(service.operatorToken)]) {
        assert.equal((await send(estate, credential, row, own.ids))[0], 401, `${engine} ${row.name}`)
      }
      for (const [scope, key] of without) {
        const [status] = await send(estate, clientOf(key), row, own.ids)
        const name = `${engine} ${row.name} without ${scope}: ${status}`
        if (row.route.scopes.includes(scope)) assert.equal(status, 403, name)
        else assert.ok(![401, 403].includes(status) && status < 500, name)
      }
    })
  })
})

/** Requests in which a tenant can name objects of another one, each with a credential and ids of the asking tenant. */
function tenantRows({ own }: Estate, token: () => Promise<string>) {
  const operator = rows.filter(namesTenant)
  return [
    ...operator.map((row) => ({ row, credential: async () => bearer(await token()) })),
    ...PUBLIC_ROWS.map((row) => ({ row, credential: () => Promise.resolve(clientOf(own.apiKey)) })),
  ]
}

/** Ids and names of the tenant that a reply to another one must not have. */
const marksOf = ({ ids, apiKey }: PopulatedTenant) => [
  ...Object.values(ids).filter((id) => id.length > 8),
  apiKey.slice(-64),
]

test('a key of another environment finds nothing by the ids of this one', options, async () => {
  await onEachEngine(async (estate) => {
    const { engine, own, foreign } = estate
    await forEachRow(PUBLIC_ROWS, async (row) => {
      const named = await send(estate, clientOf(own.apiKey), row, foreign.ids)
      if (paramsOf(row).length > 0) {
        const [status, text] = await send(estate, clientOf(own.apiKey), row, unknown(foreign))
        const hidden = (reply: string) => withoutIds(reply, Object.values(foreign.ids))
        assert.deepEqual([named[0], hidden(named[1])], [status, hidden(text)], `${engine} ${row.name}`)
        assert.equal(status, 404, row.name)
      } else {
        for (const mark of marksOf(foreign)) assert.ok(!named[1].includes(mark), `${engine} ${row.name}: ${mark}`)
      }
    })
  })
})

/** Kinds of objects to try where a member can name several kinds, and a few of them for all other texts. */
const NAMED = 'runId agentId promptId policyId operatorId issueId approvalId environmentId'.split(' ')
const FEW = ['runId', 'operatorId']

/** Ids of the other tenant's objects for a place: the object that the place names, or one of each kind. */
function valuesFor({ at, schema }: NamingPlace, { ids }: PopulatedTenant): string[] {
  const name = String(at.findLast((step) => typeof step === 'string'))
  const ofAnyKind = /^ids?$/.test(name) || (schema.format === 'uuid' && !name.endsWith('Id'))
  const kinds = Object.hasOwn(ids, name) ? [name] : ofAnyKind ? NAMED : FEW
  const isUuid = (id: string) => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)
  const fits = (id: string) =>
    schema.format === 'uuid' ? isUuid(id) : schema.pattern === undefined || new RegExp(schema.pattern, 'u').test(id)
  return kinds.map((kind) => ids[kind] ?? '').filter((id) => id.length > 1 && fits(id))
}

/** An unknown id of the same form. */
const unlike = (id: string) => (id.length === 36 ? randomUUID() : `${id.slice(0, 6)}-${randomUUID().slice(0, 8)}`)

test(
  'ids of another workspace in bodies and queries are like unknown ones, and change nothing there',
  options,
  async () => {
    await onEachEngine(async (estate) => {
      const before = await everythingOf(estate)
      const places = tenantRows(estate, () => estate.tokenOf('owner')).flatMap((asker) =>
        (['query', 'body'] as const).flatMap((part) =>
          namingPlaces(asker.row.route[part]).map((place) => ({ ...asker, part, place })),
        ),
      )
      // In this order, because a read would find what an earlier request stored or erased under a foreign id.
      const turnOf = ({ row: { name, route } }: PlaceOfRow) =>
        route.method === 'GET'
          ? 'reads'
          : name === 'createErasure'
            ? 'erases'
            : route.status === 201
              ? 'creates'
              : 'changes'
      const turns = Map.groupBy(places, turnOf)
      let asked = 0
      for (const turn of ['reads', 'changes', 'creates', 'erases'] as const) {
        await inParallel(turns.get(turn) ?? [], async (asker) => {
          for (const value of valuesFor(asker.place, estate.foreign)) {
            asked += 1
            await looksUnknown(estate, asker, value)
          }
        })
      }
      assert.ok(asked > 100, `${asked} requests`)
      assert.deepEqual(await everythingOf(estate), before)
    })
  },
)

interface PlaceOfRow {
  row: Row
  credential: () => Promise<Record<string, string>>
  part: 'query' | 'body'
  place: NamingPlace
}

async function looksUnknown(estate: Estate, { row, credential, part, place }: PlaceOfRow, value: string) {
  const nothing = unlike(value)
  // Make a new sample for each request, because the names in it must be unique.
  const samples = (given: string) => samplesWith(sampleOfRow(row)[part], place, given)
  const askWith = async (filled: unknown) =>
    send(estate, await credential(), row, estate.own.ids, { ...sampleOfRow(row), [part]: filled })
  const unknowns = samples(nothing)
  for (const [index, filled] of samples(value).entries()) {
    const [named, none] = [await askWith(filled), await askWith(unknowns[index])]
    const name = `${estate.engine} ${row.name} ${part} ${place.at.join('.')}: ${value} ${named[1]}, unknown: ${none[1]}`
    assert.ok(named[0] === none[0] && named[0] < 500, name)
    if (named[0] >= 400) assert.equal(withoutIds(named[1], [value]), withoutIds(none[1], [nothing]), name)
    else if (row.route.method === 'GET') {
      for (const mark of marksOf(estate.foreign)) assert.ok(mark === value || !named[1].includes(mark), name)
      assert.equal(isEmptyList(named[1]), isEmptyList(none[1]), name)
    }
  }
}

const isEmptyList = (text: string) => text.includes('"items":[]')

/** Answers that change without a request: the log lists exports, messages are sent, alerts are checked. */
const MOVES = /Alert|Audit|export|Delivery|Deliveries|Webhook|Tokens|Erasure|Simulation/i

/** Every read of the other workspace, as an owner of the installation. */
async function everythingOf(estate: Estate): Promise<Record<string, [number, string]>> {
  const found: Record<string, [number, string]> = {}
  const reads = rows.filter(({ name, route }) => route.method === 'GET' && !route.events && !MOVES.test(name))
  await forEachRow(reads.filter(namesTenant), async (row) => {
    const [status, text] = await send(estate, bearer(await estate.tokenOf('installation')), row, estate.foreign.ids)
    found[row.name] = [
      status,
      text.replaceAll(/"lastUsedAt":null|\d{4}-\d\d-\d\dT[\d:.]+Z/g, (found) =>
        found.endsWith('null') ? '"lastUsedAt":"<time>"' : '<time>',
      ),
    ]
  })
  return Object.fromEntries(Object.entries(found).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
