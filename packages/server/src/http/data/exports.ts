import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { FastifyInstance } from 'fastify'
import { exportText } from '../../domain/data/export.ts'
import { readMark } from '../../domain/data/export-lines.ts'
import { toIssueSummary } from '../../domain/issues/issue-view.ts'
import { toOperatorRun } from '../../domain/runs/run.ts'
import { isoTime } from '../../storage/engine/iso-time.ts'
import { runFileText } from '../../domain/runs/run-file.ts'
import { RUN_PAGE_POLICY } from '../../domain/runs/run-page.ts'
import { UNSTORABLE } from '../../domain/web/text.ts'
import { estimatorOf } from '../../prices/estimator.ts'
import { readUncosted } from '../../storage/runs/uncosted.ts'
import type { ApprovalReader } from '../approvals/approval-reader.ts'
import { refuse } from '../web/reply-error.ts'
import { namedApprovals } from '../approvals/named-approvals.ts'
import { createExportStreams } from './export-streams.ts'
import { parquetFile } from './parquet-file.ts'
import { createParquetFiles } from './parquet-files.ts'
import { isFindable, runFilterOf } from '../runs/run-filter.ts'
import type { OperatorDeps } from '../web/serve.ts'

export function exportsRoutes(app: FastifyInstance, deps: OperatorDeps, { current }: ApprovalReader): void {
  const { serve, storage } = deps
  const sendExport = createExportStreams(deps, {
    atOnce: LIMITS.exportsAtOnce,
    ofWorkspace: LIMITS.exportsOfWorkspaceAtOnce,
  })
  const parquetFiles = createParquetFiles()
  app.addHook('onClose', () => parquetFiles.close())
  // Short ones must not wait for a long one.
  const sendRunFile = createExportStreams(deps, {
    atOnce: LIMITS.runFilesAtOnce,
    ofWorkspace: LIMITS.runFilesOfWorkspaceAtOnce,
  })

  serve('exportEnvironment', async ({ query, request, reply, environment, workspace, at, audit }) => {
    const { after, ...given } = query
    const filter = runFilterOf(given, at)
    if (!isFindable(filter)) return refuse('invalid_request', `A filter ${UNSTORABLE}, so no run matches`)
    const from = after === undefined ? null : readMark(after)
    if (from === null && after !== undefined) return refuse('invalid_cursor')
    const name = `tacho-${fileTime(at)}.jsonl`
    const begin = async () => {
      // Only names of the filters: the audit log outlives the erasure of their values.
      const detail = { filters: Object.keys(given), resumed: from !== null }
      await storage.appendAudit(audit(environment.id, detail))
      const names = { workspace: workspace.name, environment: environment.name }
      return exportText(storage, { environmentId: environment.id, ...names, filter, given, from })
    }
    return sendExport({ request, reply, name, begin })
  })

  serve('exportParquet', async ({ query, request, reply, environment, workspace, at, audit }) => {
    const { table, ...given } = query
    const filter = runFilterOf(given, at)
    if (!isFindable(filter)) return refuse('invalid_request', `A filter ${UNSTORABLE}, so no run matches`)
    const begin = async () => {
      await storage.appendAudit(audit(environment.id, { filters: Object.keys(given), table }))
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
    // Needed if a browser shows the page instead of saving it.
    void reply.header('content-security-policy', `${RUN_PAGE_POLICY}; sandbox`)
    return sendRunFile({ request, reply, name: `tacho-run-${row.id}.html`, begin })
  })
}

function fileTime(time: number): string {
  return `${isoTime(time).slice(0, 19).replaceAll(':', '-')}Z`
}
