/**
 * Streams exports. The next page is read only when the client has taken the pieces before it. A client that stops reading
 * is disconnected (stalled-readers.ts), and the walk ends with its stream.
 */
import { Readable } from 'node:stream'
import { LIMITS } from '@tacho/contract/limits.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { FastifyInstance } from 'fastify'
import { exportText } from '../../domain/export.ts'
import { readMark } from '../../domain/export-lines.ts'
import { isoTime } from '../../domain/run.ts'
import type { Deps } from '../deps.ts'
import { isRefusal, refuse } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { isFindable, runFilterOf } from './run-filter.ts'

export function exportsRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, now, draining } = deps
  /** Workspaces of the exports that are being streamed. */
  const open: string[] = []

  serveRoute(app, OPERATOR_ROUTES.exportEnvironment, deps, async ({ query, request, reply }) => {
    const { after, ...given } = query
    const [workspace, environment] = [workspaceOf(request), environmentOf(request)]
    const filter = runFilterOf(given)
    if (isRefusal(filter)) return filter
    if (!isFindable(filter)) return refuse('invalid_request', 'No run can have such a text')
    const from = after === undefined ? null : readMark(after)
    if (from === null && after !== undefined) return refuse('invalid_cursor')
    const type = OPERATOR_ROUTES.exportEnvironment.replyType
    // For HEAD, the framework would read the stream to its end.
    if (request.method === 'HEAD') return reply.type(type).send()
    if (draining()) return refuse('shutting_down')
    const own = open.filter((id) => id === workspace.id).length
    if (open.length >= LIMITS.exportsAtOnce || own >= LIMITS.exportsOfWorkspaceAtOnce) {
      return refuse('overloaded', 'Too many exports are in progress')
    }
    open.push(workspace.id)
    let isCounted = true
    const ended = (): void => {
      if (isCounted) open.splice(open.indexOf(workspace.id), 1)
      isCounted = false
    }
    try {
      const target = { kind: 'environment', id: environment.id }
      // Only the names of the filters: the audit log outlives the erasure of what they name.
      const detail = { filters: Object.keys(given), resumed: from !== null }
      await storage.appendAudit([auditOf(request, now(), 'environment.export', target, detail)])
      const names = { workspace: workspace.name, environment: environment.name }
      const text = exportText(storage, { environmentId: environment.id, ...names, filter, given, from })
      const stream = Readable.from(text, { objectMode: false })
      stream.once('close', ended)
      reply.raw.once('close', () => stream.destroy())
      const name = `tacho-${isoTime(now()).slice(0, 19).replaceAll(':', '-')}Z.jsonl`
      return reply.header('content-disposition', `attachment; filename="${name}"`).type(type).send(stream)
    } catch (error) {
      ended()
      throw error
    }
  })
}
