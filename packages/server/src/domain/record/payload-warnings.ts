/** For payloads that are stored but not understood. Messages name fields and rules, never a value from the payload. */
import type { WarningCode } from '@tacho/contract/web/errors.ts'
import type { Warning } from '@tacho/contract/record/event.ts'
import { PAYLOADS } from '@tacho/contract/record/payload.ts'
import { RUN_OUTCOMES } from '@tacho/contract/engine/words.ts'
import type { TSchema } from 'typebox'
import { scoreFaults } from '../runs/score.ts'
import { schemaFaults, validatorOf } from '../web/schema-faults.ts'
import { outcomeOf, uncounted } from './usage.ts'
import type { Payload } from '../../storage/record/events.ts'

type PayloadWarning = Pick<Warning, 'code' | 'message'>

const OWN_RULES = /^\/(?:usage|cost|status|name|value|targetEventId|author)\b/

const ITEMS_LOOKED_AT = 20

const conventions = new Map<string, TSchema>(Object.entries(PAYLOADS))

export function payloadWarnings(eventType: string, payload: Payload): PayloadWarning[] {
  const schema = conventions.get(eventType)
  if (schema === undefined) return []
  const warnings: PayloadWarning[] = []
  const warn = (code: WarningCode, faults: string[]): void => {
    if (faults.length > 0) warnings.push({ code, message: faults.map((fault) => `payload/${fault}`).join('; ') })
  }
  if (eventType === 'LLM_CALL') {
    const { usage, cost } = uncounted(payload)
    warn('usage_not_counted', usage)
    warn('cost_not_counted', cost)
  }
  if (eventType === 'SESSION_OUTCOME' && outcomeOf(eventType, payload) === null) {
    warn('outcome_not_understood', [`status must be one of ${RUN_OUTCOMES.join(', ')} to close the run`])
  }
  if (eventType === 'SCORE') warn('score_not_understood', scoreFaults(payload))
  warn('payload_not_understood', brokenConventions(schema, payload))
  return warnings
}

function brokenConventions(schema: TSchema, payload: Payload): string[] {
  const validator = validatorOf(schema)
  if (validator.Check(payload)) return []
  const looked = beginning(payload, schema)
  const faults = schemaFaults(schema, validator.Errors(looked))
  if (faults.length === 0) {
    const cut = Object.keys(looked).filter((name) => looked[name] !== payload[name])
    return cut.map((name) => `${name} has an item of the wrong type`)
  }
  return faults
    .filter(({ path }) => !OWN_RULES.test(path) && !isNull(payload, path))
    .map(({ path, message }) => `${path.slice(1)} ${message}`)
}

/** Only the first items of lists, because naming faults takes time for each item. */
function beginning(payload: Payload, schema: TSchema): Payload {
  const names = Object.keys((schema as { properties?: object }).properties ?? {}).filter((name) =>
    Object.hasOwn(payload, name),
  )
  return Object.fromEntries(
    names.map((name) => {
      const value = payload[name]
      return [name, Array.isArray(value) && value.length > ITEMS_LOOKED_AT ? value.slice(0, ITEMS_LOOKED_AT) : value]
    }),
  )
}

/** Many clients send null for what they do not know. */
function isNull(payload: Payload, path: string): boolean {
  const [name = '', ...rest] = path.slice(1).split('/')
  return rest.length === 0 && Object.hasOwn(payload, name) && payload[name] === null
}
