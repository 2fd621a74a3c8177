import type { ConfigurationClient } from '@tacho/contract/operator/configuration-client.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/words.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import type { ConfigurationClientRow } from '../../storage/configuration-clients.ts'
import type { Deps } from '../deps.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'
import { readPage } from '../paging.ts'

export function configurationClientsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.listConfigurationClients, deps, async ({ query, request }) => {
    const { id } = environmentOf(request)
    const { standing } = query
    const { revision, counts, rows, nextCursor } = await readPage(cursors, query, {
      of: ['configuration clients', id, standing],
      read: (page) => storage.listConfigurationClients(id, standing, page),
      placeOf: ({ identifiedBy, clientId }: ConfigurationClientRow) => ({ identifiedBy, clientId }),
    })
    const [current = 0, updating = 0, behind = 0, silent = 0] = CLIENT_STANDINGS.map(
      (one) => counts.find((row) => row.standing === one)?.clients,
    )
    return { revision, counts: { current, updating, behind, silent }, items: rows.map(toClient), nextCursor }
  })
}

function toClient({ seenAt, ...row }: ConfigurationClientRow): ConfigurationClient {
  return { ...row, lastSeenAt: isoTime(seenAt) }
}
