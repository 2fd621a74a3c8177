import type { ConfigurationClient } from '@tacho/contract/policies/configuration-client.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/engine/words.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import type { ConfigurationClientRow } from '../../storage/policies/configuration-clients.ts'
import { readPage } from '../web/paging.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function configurationClientsRoutes({ serve, storage }: OperatorDeps): void {
  serve('listConfigurationClients', async ({ query: { standing }, environment: { id }, walk }) => {
    const { revision, counts, rows, nextCursor } = await readPage(
      walk,
      (page) => storage.listConfigurationClients(id, standing, page),
      ({ identifiedBy, clientId }: ConfigurationClientRow) => ({ identifiedBy, clientId }),
    )
    const [current = 0, updating = 0, behind = 0, silent = 0] = CLIENT_STANDINGS.map(
      (one) => counts.find((row) => row.standing === one)?.clients,
    )
    return { revision, counts: { current, updating, behind, silent }, items: rows.map(toClient), nextCursor }
  })
}

function toClient({ seenAt, ...row }: ConfigurationClientRow): ConfigurationClient {
  return { ...row, lastSeenAt: isoTime(seenAt) }
}
