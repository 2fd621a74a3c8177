import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { exportText } from '../../domain/data/export.ts'
import { readMark } from '../../domain/data/export-lines.ts'
import { toIssueSummary } from '../../domain/issues/issue.ts'
import { toOperatorRun } from '../../domain/runs/run.ts'
import { shownCosts } from '../runs/shown-cost.ts'
import { fileTime } from '../../domain/web/shown.ts'
import { runFileText } from '../../domain/runs/run-file.ts'
import { RUN_PAGE_POLICY } from '../../domain/runs/run-page.ts'
import { UNSTORABLE } from '../../domain/web/text.ts'
import { estimatorOf } from '../../prices/price-table.ts'
import { readUncosted } from '../../storage/runs/usage.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { refuse, type Refusal } from '../web/reply-error.ts'
import { namedApprovals } from '../approvals/decide.ts'
import { parquetFile, createParquetFiles } from './parquet-file.ts'
import { runCriteriaOf } from '../runs/operator-runs.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'
import type { Deps } from '../web/deps.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { Shares } from '../../domain/tenants/shares.ts'
import { inTurns } from '../web/turns.ts'
import { demandPace } from '../web/connections.ts'
import { admitAgain } from '../people/access.ts'
import { currentActor, type CallerDeps } from '../people/caller.ts'

export function exportsRoutes(app: FastifyInstance, deps: OperatorDeps, { current }: ApprovalReader): void {
  const { serve, storage } = deps
  const sendExport = createExportStreams(deps, {
    atOnce: LIMITS.exportsAtOnce,
    ofWorkspace: LIMITS.exportsOfWorkspaceAtOnce,
  })
  const parquetFiles = createParquetFiles()
  app.addHook('onClose', () => parquetFiles.close())
  // Separate slots, so that short files do not wait for a long export.
  const sendRunFile = createExportStreams(deps, {
    atOnce: LIMITS.runFilesAtOnce,
    ofWorkspace: LIMITS.runFilesOfWorkspaceAtOnce,
  })

  serve('exportEnvironment', async ({ query, request, reply, environment, workspace, actor, at, audit }) => {
    const { after, ...exportQuery } = query
    const filter = runCriteriaOf(exportQuery, at, actor)
    if (filter === null) return refuse('invalid_request', `A filter ${UNSTORABLE}, so no run matches`)
    const from = after === undefined ? null : readMark(after)
    if (from === null && after !== undefined) return refuse('invalid_cursor')
    const name = `tacho-${fileTime(at)}.jsonl`
    const begin = async () => {
      // Log only the names of the filters: the audit log outlives the erasure of their values.
      const detail = { filters: Object.keys(exportQuery), resumed: from !== null }
      await storage.appendAudit(audit(environment.id, detail))
      const names = { workspace: workspace.name, environment: environment.name }
      return exportText(storage, {
        environmentId: environment.id,
        ...names,
        filter,
        given: exportQuery,
        from,
        runs: shownCosts(deps, workspace.id),
      })
    }
    return sendExport({ request, reply, name, begin })
  })

  serve('exportParquet', async ({ query, request, reply, environment, workspace, actor, at, audit }) => {
    const { table, ...exportQuery } = query
    const filter = runCriteriaOf(exportQuery, at, actor)
    if (filter === null) return refuse('invalid_request', `A filter ${UNSTORABLE}, so no run matches`)
    const begin = async () => {
      await storage.appendAudit(audit(environment.id, { filters: Object.keys(exportQuery), table }))
      return parquetFile(parquetFiles, deps, {
        environmentId: environment.id,
        workspaceId: workspace.id,
        table,
        filter,
      })
    }
    const name = `tacho-${table}-${fileTime(at)}.parquet`
    return sendExport({ request, reply, name, begin })
  })

  serve('exportRun', async ({ query, request, reply, environment, workspace, run: row, at }) => {
    const begin = async () => {
      const estimator = await estimatorOf(deps, workspace.id, readUncosted(row.uncosted))
      const limit = LIMITS.runFileRows
      const approvals = await current.read(environment.id, () =>
        storage.listApprovalsOfRun(environment.id, row.runId, limit),
      )
      const issues = await storage.listIssues(environment.id, { runId: row.runId }, { limit, after: null })
      return runFileText(storage, environment.id, {
        run: toOperatorRun(row, estimator, (await storage.readRunScores(environment.id, [row.id])).get(row.id)),
        workspace: workspace.name,
        environment: environment.name,
        issues: issues.rows.map(toIssueSummary),
        approvals: await namedApprovals(storage, environment.id, approvals.rows, deps.now()),
        hasPayloads: query.payloads === 'true',
        writtenAt: at,
      })
    }
    // Protects a browser that shows the page instead of saving it.
    void reply.header('content-security-policy', `${RUN_PAGE_POLICY}; sandbox`)
    return sendRunFile({ request, reply, name: `tacho-run-${row.id}.html`, begin })
  })
}

interface Export {
  request: FastifyRequest
  reply: FastifyReply
  name: string
  begin: () => Promise<AsyncIterable<string | Uint8Array>>
}

function createExportStreams(
  deps: Pick<Deps, 'draining'> & CallerDeps,
  { atOnce, ofWorkspace }: { atOnce: number; ofWorkspace: number },
) {
  const { draining } = deps
  const open = new Shares({ most: atOnce, ofWorkspace, ofCredential: Math.max(2, ofWorkspace / 2) })

  async function* whileAllowed(pieces: Awaited<ReturnType<Export['begin']>>, { request, reply }: Export) {
    for await (const piece of inTurns(pieces)) {
      const actor = await currentActor(deps, request)
      // A regular end would make the file look complete.
      if (actor === null || admitAgain(request, actor) !== null) return void reply.raw.destroy()
      yield piece
    }
  }

  return async (sent: Export): Promise<FastifyReply | Refusal> => {
    const { request, reply, name, begin } = sent
    const { replyType = 'application/octet-stream' } = request.routeOptions.config.route ?? {}
    const type = replyType.startsWith('text/') ? `${replyType}; charset=utf-8` : replyType
    // For HEAD, the framework would read the stream to its end.
    if (request.method === 'HEAD') return reply.type(type).send()
    if (draining()) return refuse('shutting_down')
    const holder = holderOf(request)
    if (!open.take(holder, 1)) return refuse('overloaded', 'Too many exports are in progress')
    const leave = demandPace(request.raw.socket, LIMITS.exportPaceBytes)
    let isCounted = true
    const ended = (): void => {
      if (!isCounted) return
      isCounted = false
      open.add(holder, -1)
      leave()
    }
    try {
      const stream = Readable.from(whileAllowed(await begin(), sent), { objectMode: false })
      stream.once('error', (err) =>
        request.log.error({ err, file: name }, 'an export broke off: its file is not whole'),
      )
      stream.once('close', () => {
        ended()
        if (!stream.readableEnded && !stream.errored) {
          request.log.warn({ file: name }, 'an export was left by its client: its file is not whole')
        }
      })
      reply.raw.once('close', () => stream.destroy())
      return reply.header('content-disposition', `attachment; filename="${name}"`).type(type).send(stream)
    } catch (error) {
      ended()
      throw error
    }
  }
}
