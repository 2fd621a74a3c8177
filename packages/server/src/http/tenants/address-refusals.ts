/** Reports credentials that are used from a wrong address: once in ten minutes for each credential and network. */
import type { Storage } from '../../storage/storage.ts'
import type { ReportAddress } from './allowed-addresses.ts'
import { network } from './network.ts'
import { createWindows } from './rate-windows.ts'
import { entryOf } from '../people/audit.ts'

const QUIET_MS = 10 * 60_000
/** Of one credential, from all networks. */
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
    // Not awaited: a refusal is not slower than that of an unknown credential.
    storage
      .appendAudit([entry])
      .catch((err: unknown) => request.log.error({ err }, 'could not log a credential from a wrong address'))
  }
}
