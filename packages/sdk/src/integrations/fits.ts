/** Checks whether the arguments of a call fit its tool, as far as its schema can check synchronously. */
import { readSafely } from '../recording/json.ts'
import { fields } from './host.ts'

/** @param raw as received. Undefined: only the framework knows. */
export type Fits = (raw: string) => boolean | undefined

/** Checks synchronously with a schema of the Standard Schema or of the AI SDK. */
export function fitsSchema(schema: unknown): Fits {
  return (raw) => {
    const rawSchema = schema as Record<string, unknown> | null | undefined
    const standard = fields(rawSchema?.['~standard'])
    const [owner, validate] = standard['validate']
      ? [standard, standard['validate']]
      : [rawSchema, rawSchema?.['validate']]
    if (typeof validate !== 'function') return undefined
    const result: unknown = Reflect.apply(validate, owner, [JSON.parse(raw || '{}')])
    if (result instanceof Promise) return void result.catch(() => undefined)
    const { issues, success } = fields(result)
    return issues === undefined ? success !== false : false
  }
}

/** Checks with a parser: input on which it throws does not fit. */
export function fitsParser(parse: unknown, read: (raw: string) => unknown): Fits {
  return (raw) => {
    if (typeof parse !== 'function') return undefined
    const input = read(raw)
    return readSafely(() => (parse(input), true), false)
  }
}
