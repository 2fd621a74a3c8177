import assert from 'node:assert/strict'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Static } from 'typebox'
import { Compile } from 'typebox/compile'
import type { Answer } from '../../setup/service.ts'

type Name = keyof typeof OPERATOR_ROUTES

/** Compiling one takes longer than a request. */
const schemas = new Map<Name, ReturnType<typeof Compile>>()

/** The body of an answer. Its status and shape must match the contract. */
export function replyOf<const Of extends Name>(
  name: Of,
  { status, body, text }: Answer,
): Static<(typeof OPERATOR_ROUTES)[Of]['reply']> {
  const route = OPERATOR_ROUTES[name]
  assert.equal(status, route.status, text)
  const schema = schemas.get(name) ?? Compile(route.reply)
  schemas.set(name, schema)
  assert.ok(schema.Check(body), `${name}: ${JSON.stringify(schema.Errors(body))}`)
  return body as Static<(typeof OPERATOR_ROUTES)[Of]['reply']>
}

/** The status and code of an error. */
export function refusalOf({ status, body }: Answer): [number, string] {
  return [status, (body as { code: string }).code]
}

export const UNKNOWN_ID = '01900000-0000-7000-8000-000000000000'
