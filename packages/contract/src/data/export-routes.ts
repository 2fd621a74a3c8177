import Type from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { ExportQuery, ParquetQuery, ImportedLines, ImportReport, RunFileQuery } from './export.ts'
import { OperatorRunParams } from '../runs/operator-run.ts'

const common = { tag: 'Operation', scopes: [], params: EnvironmentParams, status: 200 } as const

const file = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' })
const read = { ...common, method: 'GET', access: 'admin', reply: file } as const

/** Exports of environments as JSON Lines, and their import; a run as one file. */
export const exportRoutes = {
  exportEnvironment: {
    ...read,
    path: '/environments/{environmentId}/export',
    audit: { action: 'environment.export', target: 'environment' },
    summary: 'Export an environment, or the runs of a filter, as JSON Lines',
    description:
      'Streams events as they were sent, runs, approvals, issues and configuration. The last line has counts and a ' +
      'checksum: without it, the export is incomplete. Send the `after` of the last `mark` line to continue.',
    query: ExportQuery,
    replyType: 'application/jsonl',
    errors: ['not_found', 'conflict', 'invalid_cursor'],
  },
  exportParquet: {
    ...read,
    path: '/environments/{environmentId}/export/parquet',
    audit: { action: 'environment.export', target: 'environment' },
    summary: 'Export the runs of a filter, or their events, as a Parquet file for analysis',
    description: 'Columns have the names of the operator API. Payloads are JSON texts as they were sent.',
    query: ParquetQuery,
    replyType: 'application/vnd.apache.parquet',
    errors: ['not_found', 'conflict'],
  },
  exportRun: {
    ...read,
    access: 'viewer',
    path: '/environments/{environmentId}/runs/{runId}/html',
    summary: 'Read one run as an HTML file that opens offline',
    description:
      'One page with outcome, usage, issues, approvals and timeline. It has no script and loads nothing. ' +
      `It shows at most ${LIMITS.runFileEvents} events, and says what it leaves out.`,
    params: OperatorRunParams,
    query: RunFileQuery,
    replyType: 'text/html',
    errors: ['not_found'],
  },
  importEnvironment: {
    ...common,
    method: 'POST',
    access: 'owner',
    path: '/environments/{environmentId}/import',
    audit: { action: 'environment.import', target: 'environment' },
    summary: 'Write lines of an export into an empty environment, with their ids and times',
    description:
      'The first request begins the import in an empty environment; the others `resume` it. Lines that are there already change nothing, ' +
      'so a request can be repeated. Approvals are marked as imported: clients never get them.',
    bodyBytes: LIMITS.importBodyBytes,
    body: ImportedLines,
    reply: ImportReport,
    errors: ['not_found', 'conflict'],
  },
} as const satisfies Record<string, OperatorRoute>
