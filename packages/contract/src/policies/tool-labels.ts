import Type, { type Static } from 'typebox'
import { id, nullableText, nullableTime } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { TOOL_LABEL_PATTERN } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams } from '../tenants/workspace.ts'

const labels = (description: string) =>
  Type.Optional(
    Type.Array(Type.String({ pattern: TOOL_LABEL_PATTERN, maxLength: LIMITS.toolLabelChars }), {
      maxItems: LIMITS.toolLabelsOfOutputs,
      description,
    }),
  )

export const ToolLabel = Type.Object(
  {
    tool: id(LIMITS.textChars, 'Name of the tool; one * stands for any characters'),
    output: labels('What its output is, for example `untrusted` or `private`'),
    does: labels('What it does, for example `external`, `destructive` or `money`'),
    when: Type.Optional(
      Type.String({
        minLength: 1,
        description: 'CEL expression over `tool.input` and `tool.output`: the rule holds only where it is true',
      }),
    ),
  },
  { $id: 'ToolLabel', description: 'Labels of tools. Rules add up' },
)
export type ToolLabel = Static<typeof ToolLabel>

const rules = Type.Array(ToolLabel, { maxItems: LIMITS.toolLabelRules })

export const ToolLabels = Type.Object(
  {
    labels: rules,
    changedAt: nullableTime('When they were changed; null: never'),
    changedBy: nullableText('Who changed them; null: nobody did'),
    coverage: Type.Object(
      {
        tools: Type.Integer({ minimum: 0, description: 'Tools that the environment has recorded' }),
        labelled: Type.Integer({
          minimum: 0,
          description: 'Those that a rule names, also where its condition is false',
        }),
        unlabelled: Type.Array(Type.String(), { description: 'Some of the others, by name' }),
      },
      { description: 'How many of the recorded tools have labels' },
    ),
  },
  { $id: 'ToolLabels', description: 'Labels of the tools of an environment, which its configuration serves' },
)
export type ToolLabels = Static<typeof ToolLabels>

const NewToolLabels = Type.Object(
  { labels: rules },
  {
    $id: 'NewToolLabels',
    description: 'Replaces all labels of the environment',
    examples: [
      {
        labels: [
          { tool: 'read_mail', output: ['untrusted'], when: '!tool.output.from.endsWith("@example.com")' },
          { tool: 'send_*', does: ['external'] },
        ],
      },
    ],
  },
)

const common = { tag: 'Deployments', scopes: [], status: 200, params: EnvironmentParams, reply: ToolLabels } as const
const PATH = '/environments/{environmentId}/tool-labels'

export const toolLabelRoutes = {
  readToolLabels: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: PATH,
    summary: 'Read the labels of the tools of an environment, and how many recorded tools have labels',
    errors: ['not_found'],
  },
  changeToolLabels: {
    ...common,
    method: 'POST',
    access: 'admin',
    path: `${PATH}/change`,
    audit: { action: 'tool_labels.change', target: 'environment' },
    summary: 'Replace the labels of the tools of an environment; conditions are checked',
    body: NewToolLabels,
    bodyBytes: LIMITS.operatorBodyBytes,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
