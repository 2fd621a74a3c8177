import { LIMITS } from '@tacho/contract/limits.ts'
import { isObject } from '@tacho/contract/read-payload.ts'

type Payload = Readonly<Record<string, unknown>>

const RELEASES = ['release', 'agentVersion', 'appVersion', 'serviceVersion']

/** Empty: retention removed the payload. */
export function releaseIn(payload: string): string | null {
  return payload === '' ? null : releaseOf(JSON.parse(payload) as Payload)
}

export function releaseOf(payload: Payload): string | null {
  const resource = payload['resource']
  const ofService = isObject(resource) ? resource['service.version'] : undefined
  const names = [...RELEASES.map((name) => (Object.hasOwn(payload, name) ? payload[name] : undefined)), ofService]
  const found = names.find((value) => typeof value === 'string' && value.trim() !== '')
  return typeof found === 'string' ? found.trim().slice(0, LIMITS.releaseChars).toWellFormed() : null
}
