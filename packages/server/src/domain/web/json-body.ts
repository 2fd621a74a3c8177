import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Static, TSchema } from 'typebox'
import { jsonFault } from './json-fault.ts'
import { hasMoreValues } from './json-values.ts'
import { faultLine, schemaFaults, sizeFaults, validatorOf, type SchemaFault } from './schema-faults.ts'

export interface BodyFault {
  ok: false
  code: 'body_too_large' | 'invalid_json' | 'invalid_request'
  detail: string
  errors?: SchemaFault[]
}

export function readJsonBody<Schema extends TSchema>(
  schema: Schema,
  bytes: Uint8Array | null,
): { ok: true; body: Static<Schema> } | BodyFault {
  if (bytes && hasMoreValues(bytes, LIMITS.bodyValues)) {
    return {
      ok: false,
      code: 'body_too_large',
      detail: `The body must have at most ${LIMITS.bodyValues} values and names`,
    }
  }
  const text = bytes === null ? '' : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return { ok: false, code: 'invalid_json', detail: jsonFault(text) }
  }
  const validator = validatorOf(schema)
  if (validator.Check(body)) return { ok: true, body: body as Static<Schema> }
  const tooMany = sizeFaults(schema, body)
  const errors = tooMany.length > 0 ? tooMany : schemaFaults(schema, validator.Errors(body))
  return { ok: false, code: 'invalid_request', detail: faultLine(errors), errors }
}
