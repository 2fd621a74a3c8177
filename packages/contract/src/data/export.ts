import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { RUN_FILTER_SCHEMAS, OperatorRunParams } from '../runs/operator-run.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

const ExportQuery = Type.Object({
  ...RUN_FILTER_SCHEMAS,
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.exportPlaceChars,
      description: 'Continue after a `mark` line: its `after`. The other parameters must be the same',
    }),
  ),
})
type ExportQuery = Static<typeof ExportQuery>

const ParquetQuery = Type.Object({
  ...RUN_FILTER_SCHEMAS,
  table: Type.Enum(['events', 'runs'], { description: 'Whether each row is an event or a run' }),
})
type ParquetQuery = Static<typeof ParquetQuery>

const RunFileQuery = Type.Object({
  payloads: Type.Optional(Type.Enum(['true'], { description: 'Also write the payloads of the events' })),
})

export const ImportedLines = Type.Object(
  {
    lines: Type.Array(Type.String({ minLength: 1, maxLength: LIMITS.importBodyBytes }), {
      minItems: 1,
      maxItems: LIMITS.importedLines,
      description:
        'Lines of an export, in their order. Each request begins with the first line of the export. The line of a run comes before its events in each request',
    }),
    resume: Type.Optional(
      Type.Boolean({
        description: 'Continue an import of the same export, which began in this environment. Equal rows stay',
      }),
    ),
  },
  {
    $id: 'ImportedLines',
    additionalProperties: false,
    description: 'A part of an export to write back',
    examples: [
      {
        lines: [
          '{"type":"export","version":1,"workspace":"acme","environment":"production","filter":{}}',
          '{"type":"agent","id":"01900000-0000-7000-8000-00000000000a","name":"Support","nameTime":1}',
        ],
      },
    ],
  },
)
export type ImportedLines = Static<typeof ImportedLines>

const count = (description: string) => Type.Integer({ minimum: 0, description })

const ImportReport = Type.Object(
  {
    written: count('Rows and events that were written'),
    known: count('Equal rows and events that were already there'),
  },
  { $id: 'ImportReport', description: 'What an import of lines did' },
)
type ImportReport = Static<typeof ImportReport>

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
