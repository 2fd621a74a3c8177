/** Words from outside, such as `constructor`, are never looked up as members of objects: all routes, both engines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Problem } from '@tacho/contract/web/errors.ts'
import { startOnBothEngines, type EngineService } from '../../setup/both-engines.ts'
import { eventually } from '../../setup/eventually.ts'
import {
  addressOf,
  bodyOf,
  populate,
  ROWS,
  sampleOf,
  type JsonSchema,
  type PopulatedTenant,
  type Row,
} from '../../setup/route-samples.ts'
import { type Answer } from '../../setup/service.ts'

interface Installation extends EngineService {
  tenant: PopulatedTenant
}

// Sign-in attempts are counted by address, so each request claims its own.
const flags = { trustProxy: '127.0.0.1', webhookNetworks: '127.0.0.0/8', operatorRateLimit: '100000' }
const installations = startOnBothEngines(flags, async (started): Promise<Installation> => {
  return { ...started, tenant: await populate(started.service, 'acme') }
})

const WORDS = Object.getOwnPropertyNames(Object.prototype)

let addresses = 0
function headersOf({ service, tenant }: Installation): Record<string, string> {
  addresses += 1
  return {
    'x-api-key': tenant.apiKey,
    'x-service-client-id': 'acme',
    authorization: `Bearer ${service.operatorToken}`,
    'x-forwarded-for': `2001:db8:${(addresses >> 16).toString(16)}:${(addresses & 0xffff).toString(16)}::1`,
  }
}

/** Left out: streams never end, and each backup reads the whole store. */
const isAnswered = ({ route }: Row) => route.replyType === undefined

const rows = ROWS.filter(isAnswered)
const rowsWithBody = rows.filter(({ route }) => route.body)

async function call(of: Installation, row: Row, change: Partial<Request> = {}): Promise<Answer> {
  const { address = addressOf(row, of.tenant.ids), headers = {}, body = bodyOf(row.route) } = change
  return of.service.call(address, {
    method: row.route.method,
    headers: { ...headersOf(of), ...headers },
    ...(row.route.body ? { body } : {}),
  })
}

interface Request {
  address: string
  headers: Record<string, string>
  body: unknown
}

/** Runs the work, a few items at a time. */
async function forEach<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const waiting = items.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const item of waiting) await work(item)
    }),
  )
}

/**
 * The two most common words in objects, and two others in turn. Lookups of words do not depend on the engine, but the texts
 * that a store can hold do.
 */
function wordsFor(row: Row, engine: string): string[] {
  if (engine === 'postgres') return []
  const at = rows.indexOf(row)
  return ['constructor', '__proto__', WORDS[at % WORDS.length] ?? '', WORDS[(at + 5) % WORDS.length] ?? '']
}

/** Every request to a row, with a word of Object.prototype or an unstorable text in one place. */
function* wordIn(row: Row, { engine, tenant }: Installation): Generator<[where: string, request: Partial<Request>]> {
  const { params, query, headers, body } = row.route
  const address = addressOf(row, tenant.ids)
  for (const word of [...wordsFor(row, engine), 'a\0b']) {
    const text = encodeURIComponent(word)
    for (const name of Object.keys(params?.properties ?? {})) {
      yield [`path ${name}=${text}`, { address: addressOf(row, { ...tenant.ids, [name]: word }) }]
    }
    for (const name of Object.keys(query?.properties ?? {})) {
      yield [`query ${name}=${text}`, { address: `${address.split('?')[0]}?${name}=${text}` }]
    }
    if (word.includes('\0')) continue
    yield [`query ${word}`, { address: `${address}${address.includes('?') ? '&' : '?'}${word}=${word}` }]
    const known = ['content-type', 'content-encoding', 'cookie', 'if-none-match', 'origin', 'sec-fetch-site']
    for (const name of [...known, ...Object.keys(headers?.properties ?? {})]) {
      if (body || !name.startsWith('content-')) yield [`${name}: ${word}`, { headers: { [name]: word } }]
    }
    yield [`cookie ${word}`, { headers: { cookie: `${word}=${word}; tacho.session_token=${word}`, authorization: '' } }]
  }
  for (const word of [...wordsFor(row, engine), '\0', '\ud800']) {
    for (const [where, changed] of body ? textsIn(body as JsonSchema, bodyOf(row.route), word) : []) {
      yield [`body ${where}=${JSON.stringify(word)}`, { body: changed }]
    }
  }
}

/** Copies of the value, each with one of its texts replaced by the word; optional texts too. */
function* textsIn(schema: JsonSchema, value: unknown, word: string, at = ''): Generator<[string, unknown]> {
  const types = [schema.type ?? 'string'].flat()
  if (schema.enum || types.includes('string')) yield [at, word]
  if (types.includes('array') && schema.items) {
    const [first] = (value as unknown[] | undefined) ?? []
    for (const [where, changed] of textsIn(schema.items, first, word, `${at}/0`)) yield [where, [changed]]
  }
  if (!types.includes('object')) return
  for (const [name, member] of Object.entries(schema.properties ?? {})) {
    const given = (value as Record<string, unknown> | undefined) ?? {}
    const present = Object.hasOwn(given, name) ? given[name] : sampleOf(member, name)
    for (const [where, changed] of textsIn(member, present, word, `${at}/${name}`)) {
      yield [where, { ...given, [name]: changed }]
    }
  }
}

test('a word of Object.prototype, and NUL, is unknown wherever a word is accepted', { timeout: 900_000 }, async () => {
  for (const of of installations) {
    const requests = rows.flatMap((row) => [...wordIn(row, of)].map((given) => [row, ...given] as const))
    const faults: string[] = []
    await forEach(requests, async ([row, where, request]) => {
      const { status, text } = await call(of, row, request)
      if (status >= 500) faults.push(`${of.engine} ${row.name} ${where}: ${text.slice(0, 200)}`)
    })
    assert.deepEqual(faults, [])
    assert.equal((await of.service.call('/readyz')).status, 200)
  }
})

const NAMES_OF_OURS =
  'refusal code detail errors more retryAfterSeconds current status title type json text then ok field message outcome error result value sent success'
    .split(' ')
    .concat(WORDS)
const VALUES = ['not_found', 'internal', '{}', true, null, 404, [], { code: 'internal' }, [{ path: '/', message: 'x' }]]

const extraKeys = fc
  .array(
    fc.tuple(
      fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...NAMES_OF_OURS) }, fc.string({ maxLength: 8 })),
      fc.oneof(fc.constantFrom<unknown>(...VALUES), fc.jsonValue({ maxDepth: 2 })),
    ),
    { minLength: 1, maxLength: 12 },
  )
  .map((entries) => Object.fromEntries(entries))
const everyKey = Object.fromEntries(NAMES_OF_OURS.map((name, at) => [name, VALUES[at % VALUES.length]]))

/** The value with additional members in each object whose members the schema names. */
function withExtras(schema: JsonSchema, value: unknown, extras: Record<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((item) => withExtras(schema.items ?? {}, item, extras))
  // Some bodies allow no other keys; there they are rejected by name.
  if (!schema.properties || schema.additionalProperties === false) return value
  const { properties } = schema
  const added = Object.entries(extras).filter(([name]) => !Object.hasOwn(properties, name))
  const own = Object.entries(value as object).map(([name, member]) => [
    name,
    withExtras(properties[name] ?? {}, member, extras),
  ])
  return Object.fromEntries([...added, ...own] as [string, unknown][])
}

/** The part of a reply that must be equal for equal requests: everything except ids, names and times. */
function shapeOf({ status, body }: Answer): unknown {
  if (status < 400) return [status, Object.keys((body ?? {}) as object)]
  const { code, detail, errors } = body as Problem
  const plain = detail?.replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
  return [status, code, plain, errors]
}

test('additional keys in a body change nothing', { timeout: 900_000 }, async () => {
  const [of] = installations
  assert.ok(of)
  /** Only a few simulations may wait at a time. */
  const untilSimulated = async () => {
    const path = `/environments/${of.tenant.environmentId}/simulations`
    await eventually(async () => {
      const { items } = (await of.service.operator<{ items: { endedAt: string | null }[] }>(path)).body
      return items.every(({ endedAt }) => endedAt !== null)
    }, 'the end of all simulations')
  }
  const callAlone = async (row: Row, change?: Partial<Request>) => {
    if (row.name === 'createSimulation') await untilSimulated()
    return call(of, row, change)
  }
  for (const row of rowsWithBody) {
    const schema = row.route.body as JsonSchema
    await callAlone(row)
    const plain = shapeOf(await callAlone(row))
    const same = async (extras: Record<string, unknown>) => {
      const body = withExtras(schema, bodyOf(row.route), extras)
      assert.deepEqual(shapeOf(await callAlone(row, { body })), plain, row.name)
    }
    await same(everyKey)
    await fc.assert(fc.asyncProperty(extraKeys, same), { numRuns: 4 })
  }
})
