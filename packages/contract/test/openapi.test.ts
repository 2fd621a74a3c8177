import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BaseResolver, createConfig, lintDocument, makeDocumentFromString } from '@redocly/openapi-core'
import type { TSchema } from 'typebox'
import { operatorDocument, publicDocument } from '../src/web/openapi.ts'
import { OPERATOR_ROUTES } from '../src/web/operator-routes.ts'
import { PAYLOADS } from '../src/record/payload.ts'
import type { Route } from '../src/web/route.ts'
import { errorsOf } from '../src/web/route-errors.ts'
import { ROUTES } from '../src/web/routes.ts'

const DOCUMENTS = new Map([
  ['public', publicDocument('1.0.0')],
  ['operator', operatorDocument('1.0.0')],
])
const ROWS: [name: string, route: Route][] = [...Object.entries(ROUTES), ...Object.entries(OPERATOR_ROUTES)]

/** Findings of the linter that are intended. */
const MEANT = [
  // Payload conventions are not checked, so only an extension refers to them.
  ...Object.values(PAYLOADS).map(
    (schema) => `no-unused-components: Component: "${'$id' in schema ? String(schema.$id) : ''}" is never used.`,
  ),
  // The identity provider redirects a browser there, which then goes to the console.
  'operation-2xx-response: Operation must have at least one `2XX` response.',
]

test('the linter finds nothing in either document', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  for (const [name, content] of DOCUMENTS) {
    const document = makeDocumentFromString(JSON.stringify(content), `${name}.json`)
    const found = await lintDocument({ document, externalRefResolver: new BaseResolver(), config: config.styleguide })
    const problems = found.map(({ ruleId, message }) => `${ruleId}: ${message}`)
    assert.deepEqual(
      problems.filter((problem) => !MEANT.includes(problem)),
      [],
      name,
    )
  }
})

test('every body, every JSON reply and every message has a name, so that generated clients have good ones', () => {
  for (const [name, { body, reply, replyType, events = {} }] of ROWS) {
    const schemas = [body, replyType === undefined ? reply : undefined, ...Object.values(events)]
    for (const schema of schemas) assert.ok(schema === undefined || '$id' in schema, `${name}: give it an $id`)
  }
})

/** Every schema inside a value, the value too. */
function* schemasIn(value: unknown): Generator<TSchema> {
  if (typeof value !== 'object' || value === null) return
  if ('$id' in value) yield value as TSchema
  for (const [key, member] of Object.entries(value)) if (key !== 'examples') yield* schemasIn(member)
}

test('no name has two shapes', () => {
  const shapes = new Map<string, string>()
  for (const [, { params, query, headers, body, reply, events }] of ROWS) {
    for (const schema of schemasIn([params, query, headers, body, reply, events])) {
      const name = (schema as { $id: string }).$id
      const shape = JSON.stringify(schema)
      assert.equal(shapes.get(name) ?? shape, shape, name)
      shapes.set(name, shape)
    }
  }
  assert.ok(shapes.size > 100)
})

test('a row answers with its own errors and those of its kind', () => {
  const codes = (route: Route) => errorsOf(route)
  assert.ok(codes(ROUTES.readRun).includes('not_found'))
  assert.ok(!codes(ROUTES.readRun).includes('storage_full'))
  assert.ok(codes(ROUTES.recordEvents).includes('storage_full'))
  assert.ok(codes(ROUTES.recordEvents).includes('invalid_utf8'))
  assert.ok(!codes(OPERATOR_ROUTES.resolveIssue).includes('invalid_utf8'))
  assert.ok(!codes(OPERATOR_ROUTES.readSignInMethods).includes('unauthenticated'))
  assert.ok(!codes(OPERATOR_ROUTES.readMe).includes('forbidden'))
  assert.ok(codes(OPERATOR_ROUTES.resolveIssue).includes('forbidden'))
})

test('every $ref of a document leads somewhere', () => {
  for (const [name, content] of DOCUMENTS) {
    const refs = [...JSON.stringify(content).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
    assert.ok(refs.length > 50)
    const components = content['components'] as Record<string, Record<string, unknown>>
    for (const [ref, kind = '', part = ''] of refs) assert.ok(components[kind]?.[part], `${name}: ${ref}`)
  }
})

test('sizes are readable: no bare number of bytes with many digits', () => {
  for (const [name, content] of DOCUMENTS) {
    assert.deepEqual(JSON.stringify(content).match(/[^,\d]\d{4,} bytes/g), null, name)
  }
})
