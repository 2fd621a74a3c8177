/**
 * Permissions for every row of the operator API: each role and token, with ids of its own workspace, of other workspaces, and
 * unknown ids. On both engines, because the store finds the rows.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { OperatorRoute, Role } from '@tacho/contract/operator/access.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import {
  addressOf,
  bodyOf,
  OPERATOR_ROWS,
  populate,
  type PopulatedTenant,
  type Row,
} from '../../setup/route-samples.ts'
import { ROLES } from '@tacho/contract/words.ts'

type Ids = Record<string, string>

interface Estate extends EngineService {
  own: PopulatedTenant
  foreign: PopulatedTenant
  /** A role: a token of the own workspace. `foreign`: of an owner of the other workspace. `installation`: of all workspaces. */
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

/** The status, and for errors the body without the parts that differ from request to request. */
async function ask({ service }: Estate, token: string | undefined, row: Row, ids: Ids): Promise<[number, string]> {
  const { method, body } = row.route
  const send = () =>
    fetch(service.url + addressOf(row, ids), {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(bodyOf(row.route)) } : {}),
    })
  const reply = await whenFree(send)
  // A successful stream never ends.
  if (reply.status < 400) await reply.body?.cancel()
  const text = reply.status < 400 ? '' : await reply.text()
  const known = Object.values(ids).reduce((left, id) => (id === '1' ? left : left.replaceAll(id, '<id>')), text)
  return [reply.status, known.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')]
}

/** Sends again while the server is at capacity: exports of other rows have all places, or the database is busy. */
async function whenFree<Reply extends { status: number; body: unknown }>(send: () => Promise<Reply>): Promise<Reply> {
  for (;;) {
    const reply = await send()
    if (reply.status !== 503) return reply
    if (reply.body instanceof ReadableStream) await reply.body.cancel()
    await wait(5)
  }
}

async function forEachRow(of: readonly Row[], work: (row: Row) => Promise<void>): Promise<void> {
  const waiting = of.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const row of waiting) await work(row)
    }),
  )
}

const options = { timeout: 240_000 }

test('nothing is served without a valid credential', options, async () => {
  for (const estate of estates) {
    await forEachRow(rows, async (row) => {
      for (const token of [undefined, `tacho-operator_${'0'.repeat(16)}_${'0'.repeat(64)}`]) {
        assert.equal((await ask(estate, token, row, estate.own.ids))[0], 401, row.name)
      }
    })
  }
})

test('another workspace, and its objects addressed through one’s own, look like missing ones', options, async () => {
  for (const estate of estates) {
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
      // And the reverse.
      const [status] = await ask(estate, await tokenOf('foreign'), row, own.ids)
      assert.equal(status, 404, row.name)
    })
    await stillThere(estate)
  }
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
  for (const estate of estates) {
    await forEachRow(
      rows.filter((row) => row.route.method === 'GET' && namesTenant(row)),
      async (row) => {
        for (const role of ROLES.slice(ROLES.indexOf(accessOf(row) as Role))) {
          const [status, text] = await ask(estate, await estate.tokenOf(role), row, estate.own.ids)
          assert.equal(status, row.route.status, `${estate.engine} ${row.name} as ${role}: ${text}`)
        }
      },
    )
  }
})

test("a role below the endpoint's is rejected, the role itself is accepted", options, async () => {
  const order = [...ROLES, 'installation'] as const
  for (const estate of estates) {
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
  }
})

test('an endpoint below a workspace requires a role in that workspace', () => {
  for (const row of rows) assert.equal((ROLES as readonly string[]).includes(accessOf(row)), namesTenant(row), row.name)
})
