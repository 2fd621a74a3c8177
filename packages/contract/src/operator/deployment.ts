import Type, { type Static, type TUnsafe } from 'typebox'
import { cursor, nextCursor, nullableText, pageLimit, time, uuid } from '../fields.ts'
import { LIMITS } from '../limits.ts'
import { newVersionFields, Version, VERSION_PATTERN } from './version.ts'

export const DEPLOYABLE_KINDS = ['prompt', 'policy'] as const
export const DeployableKind = Type.Enum([...DEPLOYABLE_KINDS], { $id: 'DeployableKind' })
export type DeployableKind = (typeof DEPLOYABLE_KINDS)[number]

const nullableVersion = (description: string): TUnsafe<string | null> =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], pattern: VERSION_PATTERN, description })

const item = {
  kind: DeployableKind,
  id: Type.String({ minLength: 1, maxLength: LIMITS.policyIdChars, description: 'Prompt id or policy id' }),
}

const revision = Type.String({ description: 'Revision of the runtime configuration of the environment' })

const named = { ...item, name: Type.String({ description: 'Name of the prompt; id of the policy' }) }

export const Deployment = Type.Object(
  {
    ...named,
    version: Version,
    deployedAt: time('Since when it is in force'),
    deployedBy: Type.String(),
    publication: Type.Integer({ minimum: 1, description: 'The publication that put it in force' }),
  },
  { $id: 'Deployment', description: 'A version of a prompt or policy that is in force in an environment' },
)
export type Deployment = Static<typeof Deployment>

export const DeploymentPage = Type.Object(
  { revision, items: Type.Array(Deployment), nextCursor },
  { $id: 'DeploymentPage' },
)

const items = <Item extends Parameters<typeof Type.Array>[0]>(of: Item) =>
  Type.Array(of, { minItems: 1, maxItems: LIMITS.deploymentItems })

export const NewDeployment = Type.Object(
  {
    items: items(
      Type.Object({ ...item, version: nullableVersion('Version to put in force; null takes the item out of force') }),
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
    from: uuid('Environment of the same workspace whose versions are taken over'),
    items: Type.Optional(items(Type.Object(item))),
    ...newVersionFields,
  },
  {
    $id: 'NewPromotion',
    additionalProperties: false,
    description: 'Without `items`: everything that is in force there',
    examples: [
      {
        from: '01900000-0000-7000-8000-000000000001',
        items: [{ kind: 'policy', id: 'refund-limit' }],
        note: 'As tried in staging',
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
  from: nullableVersion('Version that was in force before; null: none was'),
  to: nullableVersion('Version that is in force since; null: none is'),
}

export const PublicationResult = Type.Object(
  {
    revision,
    publication: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      description: 'Number of this publication in the environment; null when there was nothing to change',
    }),
    changes: Type.Array(Type.Object(changeFields)),
  },
  {
    $id: 'PublicationResult',
    description: 'What a publication changed. It is in force on this node at once, on all within a second',
  },
)
export type PublicationResult = Static<typeof PublicationResult>

export const PUBLICATION_ACTIONS = ['DEPLOY', 'PROMOTE', 'ROLL_BACK'] as const
export type PublicationAction = (typeof PUBLICATION_ACTIONS)[number]

/** One change of what is in force. Changes of one publication came into force together. */
export const DeploymentChange = Type.Object(
  {
    publication: Type.Integer({ minimum: 1 }),
    action: Type.Enum([...PUBLICATION_ACTIONS]),
    ...changeFields,
    at: time('When it was published'),
    by: Type.String({ description: 'Who published it' }),
    note: nullableText('Why'),
    sourceEnvironmentId: nullableText('Environment it was promoted from'),
    revision,
  },
  { $id: 'DeploymentChange', description: 'One change of what is in force in an environment' },
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
