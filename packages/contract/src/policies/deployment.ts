import Type, { type Static, type TUnsafe } from 'typebox'
import { cursor, importedAt, nextCursor, nullableText, pageLimit, time, uuid } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { DEPLOYABLE_KINDS, VERSION_PATTERN } from '../engine/words.ts'
import { newVersionFields, Version } from './version.ts'

export const DeployableKind = Type.Enum([...DEPLOYABLE_KINDS], { $id: 'DeployableKind' })
export type DeployableKind = (typeof DEPLOYABLE_KINDS)[number]

const nullableVersion = (description: string): TUnsafe<string | null> =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], pattern: VERSION_PATTERN, description })

const item = {
  kind: DeployableKind,
  id: Type.String({ minLength: 1, maxLength: LIMITS.policyIdChars, description: 'Prompt id or policy id' }),
}

const revision = Type.String({ description: "Revision of the environment's runtime configuration" })

const named = { ...item, name: Type.String({ description: 'Name of the prompt; id of the policy' }) }

export const Deployment = Type.Object(
  {
    ...named,
    version: Version,
    earlierVersion: nullableVersion('Version that a rollback restores; null: none was deployed before'),
    deployedAt: time('When it was deployed'),
    deployedBy: Type.String(),
    importedAt,
    publication: Type.Integer({ minimum: 1, description: 'The publication that deployed it' }),
  },
  { $id: 'Deployment', description: 'A version of a prompt or policy that is deployed in an environment' },
)
export type Deployment = Static<typeof Deployment>

export const DeploymentPage = Type.Object(
  { revision, items: Type.Array(Deployment), nextCursor },
  { $id: 'DeploymentPage' },
)

const items = <Item extends Parameters<typeof Type.Array>[0]>(of: Item) =>
  Type.Array(of, {
    minItems: 1,
    maxItems: LIMITS.deploymentItems,
    description: 'Each prompt or policy at most once',
  })

export const NewDeployment = Type.Object(
  {
    items: items(
      Type.Object({
        ...item,
        version: nullableVersion('Version to deploy; null removes the item from the environment'),
      }),
    ),
    ...newVersionFields,
  },
  {
    $id: 'NewDeployment',
    additionalProperties: false,
    examples: [{ items: [{ kind: 'policy', id: 'refund-limit', version: '1' }], note: 'Refunds need a person' }],
  },
)
export type NewDeployment = Static<typeof NewDeployment>

export const NewPromotion = Type.Object(
  {
    from: uuid('Environment of the same workspace to promote from'),
    items: Type.Optional(items(Type.Object(item))),
    ...newVersionFields,
  },
  {
    $id: 'NewPromotion',
    additionalProperties: false,
    description: 'Without `items`: everything deployed there',
    examples: [
      {
        from: '01900000-0000-7000-8000-000000000001',
        items: [{ kind: 'policy', id: 'refund-limit' }],
        note: 'Tested in staging',
      },
    ],
  },
)
export type NewPromotion = Static<typeof NewPromotion>

export const NewRollback = Type.Object(
  { items: items(Type.Object(item)), ...newVersionFields },
  {
    $id: 'NewRollback',
    additionalProperties: false,
    examples: [{ items: [{ kind: 'policy', id: 'refund-limit' }], note: 'It blocked too much' }],
  },
)
export type NewRollback = Static<typeof NewRollback>

const changeFields = {
  ...named,
  from: nullableVersion('Previously deployed version; null: none'),
  to: nullableVersion('Version deployed by this change; null: none'),
}

export const PublicationResult = Type.Object(
  {
    revision,
    publication: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'Number of this publication in the environment; null when nothing changed',
    }),
    changes: Type.Array(Type.Object(changeFields)),
  },
  {
    $id: 'PublicationResult',
    description: 'What a publication changed. It applies on this node immediately and on all nodes within a second',
  },
)
export type PublicationResult = Static<typeof PublicationResult>

export const PUBLICATION_ACTIONS = ['DEPLOY', 'PROMOTE', 'ROLL_BACK'] as const
export type PublicationAction = (typeof PUBLICATION_ACTIONS)[number]

/** One change of a deployment. All changes of one publication apply together. */
export const DeploymentChange = Type.Object(
  {
    publication: Type.Integer({ minimum: 1 }),
    action: Type.Enum([...PUBLICATION_ACTIONS]),
    ...changeFields,
    at: time('When it was published'),
    by: Type.String({ description: 'Who published it' }),
    importedAt,
    note: nullableText('Reason for the publication'),
    sourceEnvironmentId: nullableText('Environment it was promoted from'),
    revision,
  },
  { $id: 'DeploymentChange', description: 'One change of what is deployed in an environment' },
)
export type DeploymentChange = Static<typeof DeploymentChange>

export const DeploymentChangePage = Type.Object(
  { items: Type.Array(DeploymentChange), nextCursor },
  { $id: 'DeploymentChangePage' },
)

export const DeploymentChangesQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  kind: Type.Optional(DeployableKind),
  id: Type.Optional(Type.String({ minLength: 1, description: 'Prompt id or policy id; needs `kind`' })),
})
