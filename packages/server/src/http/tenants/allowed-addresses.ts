/** Networks from which a credential is valid. */
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { refuse, type Refusal } from '../web/reply-error.ts'
import type { Storage } from '../../storage/storage.ts'
import { network, createWindows } from './rate-limit.ts'
import { entryOf } from '../people/audit.ts'

type Network = [address: ipaddr.IPv4 | ipaddr.IPv6, prefix: number]

const MAPPED_BITS = 96

/** The canonical form, such as 192.0.2.0/24 for 192.0.2.7/24, or null. IPv4 within IPv6 becomes IPv4. */
export function canonicalNetwork(text: string): string | null {
  const [address = '', prefix, ...more] = text.split('/')
  // Checked first: the library also reads forms such as 127.1 and 0x7f000001, and a zone is valid on only one machine.
  const version = address.includes('%') ? 0 : isIP(address)
  const bits = version === 4 ? 32 : 128
  if (version === 0 || more.length > 0 || (prefix !== undefined && !/^(0|[1-9]\d{0,2})$/.test(prefix))) return null
  const length = prefix === undefined ? bits : Number(prefix)
  if (length > bits) return null
  const [found, used] = unmapped([ipaddr.parse(address), length])
  const kind = found instanceof ipaddr.IPv4 ? ipaddr.IPv4 : ipaddr.IPv6
  const network = kind.networkAddressFromCIDR(`${found.toString()}/${used}`).toString()
  return used === (kind === ipaddr.IPv4 ? 32 : 128) ? network : `${network}/${used}`
}

function unmapped([address, length]: Network): Network {
  const isMapped = address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && length >= MAPPED_BITS
  return isMapped ? [address.toIPv4Address(), length - MAPPED_BITS] : [address, length]
}

/** Parsed once for each list of a cached credential. */
const parsed = new WeakMap<readonly string[], readonly Network[]>()

/** Null allows every address. */
export function isAddressAllowed(networks: readonly string[] | null, address: string): boolean {
  if (networks === null) return true
  if (!ipaddr.isValid(address)) return false
  const from = ipaddr.process(address)
  let known = parsed.get(networks)
  if (known === undefined) {
    known = networks.map((text) =>
      ipaddr.parseCIDR(text.includes('/') ? text : `${text}/${text.includes(':') ? 128 : 32}`),
    )
    parsed.set(networks, known)
  }
  return known.some(([network, length]) => network.kind() === from.kind() && from.match(network, length))
}

interface RefusedCredential {
  kind: 'api_key' | 'operator_token'
  id: string
  name: string
  workspaceId: string | null
  environmentId?: string
}

export type ReportAddress = (request: FastifyRequest, credential: RefusedCredential) => void

export function wrongAddress({ ip }: { ip: string }, what: string): Refusal {
  return refuse('unauthenticated', `This ${what} is not valid from your address, ${ip}`)
}

/** Reports credentials that are used from a refused address: once in ten minutes for each credential and network. */

const QUIET_MS = 10 * 60_000
/** Reports of one credential, over all networks. */
const REPORTS_PER_CREDENTIAL = 20

export function createAddressRefusals(storage: Pick<Storage, 'appendAudit'>, now: () => number): ReportAddress {
  const windows = createWindows({ windowMs: QUIET_MS })
  return function reportAddress(request, credential) {
    const { kind, id, name, workspaceId, environmentId } = credential
    const isNews = windows.take(`${id} ${network(request.ip)}`, 1).allowed
    if (!isNews || !windows.take(id, REPORTS_PER_CREDENTIAL).allowed) return
    const line = { requestId: request.id, [kind === 'api_key' ? 'keyId' : 'tokenId']: id, address: request.ip }
    request.log.warn(line, 'a credential was used from an address that it does not allow')
    const scope = {
      actor: { kind: 'token', id, name },
      workspace: workspaceId === null ? null : { id: workspaceId },
      environment: environmentId === undefined ? null : { id: environmentId },
    } as const
    const entry = entryOf({ scope, request }, now(), `${kind}.use.refused`, { kind, id }, { why: 'address' })
    // Not awaited, so that the refusal takes no longer than that of an unknown credential.
    storage
      .appendAudit([entry])
      .catch((err: unknown) => request.log.error({ err }, 'could not log a credential from a wrong address'))
  }
}
