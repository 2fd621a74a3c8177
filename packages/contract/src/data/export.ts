import Type, { type Static } from 'typebox'
import { LIMITS } from '../engine/limits.ts'
import { RUN_FILTERS } from '../runs/operator-run.ts'

export const ExportQuery = Type.Object({
  ...RUN_FILTERS,
  after: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: LIMITS.exportPlaceChars,
      description: 'Continue after a `mark` line: its `after`. The other parameters must be the same',
    }),
  ),
})
export type ExportQuery = Static<typeof ExportQuery>

export const ParquetQuery = Type.Object({
  ...RUN_FILTERS,
  table: Type.Enum(['events', 'runs'], { description: 'Whether each row is an event or a run' }),
})
export type ParquetQuery = Static<typeof ParquetQuery>

export const RunFileQuery = Type.Object({
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

export const ImportReport = Type.Object(
  {
    written: count('Rows and events that were written'),
    known: count('Equal rows and events that were already there'),
  },
  { $id: 'ImportReport', description: 'What an import of lines did' },
)
export type ImportReport = Static<typeof ImportReport>
