import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { isObject, textAt } from '@tacho/contract/record/payload-reader.ts'
import type { Payload } from '../../storage/record/events.ts'

const RELEASES = ['release', 'agentVersion', 'appVersion', 'serviceVersion']

/** Empty: retention removed the payload. */
export function releaseIn(payload: string): string | null {
  return payload === '' ? null : releaseOf(JSON.parse(payload) as Payload)
}

export function releaseOf(payload: Payload): string | null {
  const resource = payload['resource']
  const ofService = isObject(resource) ? textAt(resource, 'service.version') : null
  const found = [...RELEASES.map((name) => textAt(payload, name)), ofService].find((text) => text?.trim())
  return found ? found.trim().slice(0, LIMITS.releaseChars).toWellFormed() : null
}
