import { LIMITS } from '@tacho/contract/limits.ts'
import type { ConfigurationClient } from '@tacho/contract/operator/configuration-client.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import { CLIENT_STANDINGS } from '@tacho/contract/words.ts'
import type { FastifyInstance } from 'fastify'
import { isoTime } from '../../domain/run.ts'
import type { ConfigurationClientRow, ConfigurationClientsPage } from '../../storage/configuration-clients.ts'
import type { Deps } from '../deps.ts'
import { pageOf, startOf } from '../paging.ts'
import { isRefusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf } from './access.ts'

export function configurationClientsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, cursors } = deps

  serveRoute(app, OPERATOR_ROUTES.listConfigurationClients, deps, async ({ query, request }) => {
    const { id } = environmentOf(request)
    const { limit = LIMITS.operatorPageDefault, cursor, standing } = query
    const walk = ['configuration clients', id, standing]
    const start = startOf<NonNullable<ConfigurationClientsPage['after']>>(cursors, walk, cursor)
    if (isRefusal(start)) return start
    const { revision, counts, rows } = await storage.listConfigurationClients(id, standing, {
      limit: limit + 1,
      ...start,
    })
    const [current = 0, updating = 0, behind = 0, silent = 0] = CLIENT_STANDINGS.map(
      (one) => counts.find((row) => row.standing === one)?.clients,
    )
    const place = ({ identifiedBy, clientId }: ConfigurationClientRow) =>
      cursors.write(walk, { identifiedBy, clientId })
    return { revision, counts: { current, updating, behind, silent }, ...pageOf(rows, limit, toClient, place) }
  })
}

function toClient({ seenAt, ...row }: ConfigurationClientRow): ConfigurationClient {
  return { ...row, lastSeenAt: isoTime(seenAt) }
}
