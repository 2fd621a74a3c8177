import Type, { type Static, type TUnsafe } from 'typebox'
import { cursor, importedAt, nextCursor, nullableText, pageLimit, time, uuid, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { DEPLOYABLE_KINDS, VERSION_PATTERN, CLIENT_STANDINGS } from '../engine/words.ts'
import { newVersionFields, Version } from './version.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, ListQuery } from '../tenants/workspace.ts'
import { SharePercent } from './runtime-config.ts'

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

const PromptShare = Type.Object(
  {
    version: Version,
    percent: SharePercent,
    startedAt: time('When the share began. Another percentage does not begin it again'),
    startedBy: Type.String(),
    damaged: damaged('The stored share does not match its checksum: end it'),
  },
  {
    $id: 'PromptShare',
    description: 'A version of a prompt that a part of the sessions gets; the others get the one in force',
  },
)

export const Deployment = Type.Object(
  {
    ...named,
    version: Version,
    share: Type.Union([PromptShare, Type.Null()], { description: 'Of a prompt; null: all sessions get `version`' }),
    earlierVersion: nullableVersion('Version that a rollback restores; null: none was deployed before'),
    deployedAt: time('When it was deployed'),
    deployedBy: Type.String(),
    importedAt,
    publication: Type.Integer({ minimum: 1, description: 'The publication that deployed it' }),
    damaged: damaged('The stored row does not match its checksum: deploy the item again'),
  },
  { $id: 'Deployment', description: 'A version of a prompt or policy that is deployed in an environment' },
)
export type Deployment = Static<typeof Deployment>

const DeploymentPage = Type.Object(
  {
    revision,
    damaged: damaged('The stored configuration does not match its revision: clients keep theirs until a publication'),
    items: Type.Array(Deployment),
    nextCursor,
  },
  { $id: 'DeploymentPage' },
)

const replaces = Type.Optional(
  nullableVersion(
    'Version in force that you saw; null: none. Another one is in force: 409, and nothing changes. Omitted: whatever is in force',
  ),
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
        replaces,
        share: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 99,
            description:
              'Of a prompt: the percentage of sessions that get this version, beside the version in force; another value changes it. ' +
              '0 ends the share of this version. Omitted: all sessions get the version, and a share of the prompt ends',
          }),
        ),
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

const NewPromotion = Type.Object(
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
type NewPromotion = Static<typeof NewPromotion>

const NewRollback = Type.Object(
  {
    items: items(
      Type.Object({
        ...item,
        replaces,
        restores: Type.Optional(
          Type.String({
            pattern: VERSION_PATTERN,
            description: 'Earlier version that you saw (`earlierVersion`). The rollback would restore another one: 409',
          }),
        ),
      }),
    ),
    ...newVersionFields,
  },
  {
    $id: 'NewRollback',
    additionalProperties: false,
    examples: [
      { items: [{ kind: 'policy', id: 'refund-limit', replaces: '2', restores: '1' }], note: 'It blocked too much' },
    ],
  },
)
type NewRollback = Static<typeof NewRollback>

const changeFields = {
  ...named,
  from: nullableVersion('Previously deployed version; null: none'),
  to: nullableVersion('Version deployed by this change; null: none'),
  share: Type.Union(
    [Type.Object({ version: Version, percent: Type.Integer({ minimum: 0, maximum: 99 }) }), Type.Null()],
    {
      description:
        'The share that changed, 0 percent: it ended; then `from` is `to`. Null: the version in force changed',
    },
  ),
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

const PUBLICATION_ACTIONS = ['DEPLOY', 'PROMOTE', 'ROLL_BACK', 'SHARE'] as const

/** A change of a deployment. All changes of one publication apply together. */
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
  { $id: 'DeploymentChange', description: 'A change to the deployments of an environment' },
)
export type DeploymentChange = Static<typeof DeploymentChange>

const DeploymentChangePage = Type.Object(
  { items: Type.Array(DeploymentChange), nextCursor },
  { $id: 'DeploymentChangePage' },
)

const DeploymentChangesQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  kind: Type.Optional(DeployableKind),
  id: Type.Optional(Type.String({ minLength: 1, description: 'Prompt id or policy id; needs `kind`' })),
  from: Type.Optional(time('Published at or after this time')),
  to: Type.Optional(time('Published before this time')),
})

export const ClientStanding = Type.Enum([...CLIENT_STANDINGS], {
  $id: 'ClientStanding',
  description:
    'CURRENT: has the revision of the environment. UPDATING: had another one when it last asked, at most two minutes ' +
    'after the revision changed. BEHIND: had another one later than that, or judged a call by it. SILENT: last asked more than three minutes ' +
    'before another client did',
})
export type ClientStanding = (typeof CLIENT_STANDINGS)[number]

export const ConfigurationClient = Type.Object(
  {
    clientId: Type.String({ description: 'What it sends in X-Service-Client-ID; else the id of its API key' }),
    identifiedBy: Type.Enum(['client', 'key'], { description: 'Whether `clientId` is of the client or of the key' }),
    keyId: Type.String({ description: 'The API key of its last request' }),
    revision: Type.String({ description: 'The revision that it has' }),
    standing: ClientStanding,
    lastSeenAt: time('When it last asked for the configuration, or judged a call by an old one'),
  },
  { $id: 'ConfigurationClient', description: 'A client that asks for the runtime configuration of an environment' },
)
export type ConfigurationClient = Static<typeof ConfigurationClient>

const count = (description: string) => Type.Integer({ minimum: 0, description })

const ConfigurationClientPage = Type.Object(
  {
    revision: Type.String({ description: "Revision of the environment's runtime configuration" }),
    counts: Type.Object(
      {
        current: count('Clients that have it'),
        updating: count('Clients that may still get it'),
        behind: count('Clients that should have it'),
        silent: count('Clients that stopped asking'),
      },
      { description: 'Counts over all clients of the environment, not only this page' },
    ),
    items: Type.Array(ConfigurationClient),
    nextCursor,
  },
  { $id: 'ConfigurationClientPage' },
)

const ConfigurationClientsQuery = Type.Object({
  limit: pageLimit(LIMITS.operatorPageDefault, LIMITS.operatorPageMax),
  cursor,
  standing: Type.Optional(ClientStanding),
})

const read = { tag: 'Deployments', scopes: [], access: 'viewer', method: 'GET', status: 200 } as const
const publish = {
  tag: 'Deployments',
  scopes: [],
  access: 'admin',
  method: 'POST',
  status: 200,
  params: EnvironmentParams,
  reply: PublicationResult,
  bodyBytes: LIMITS.operatorBodyBytes,
  errors: ['not_found', 'conflict'],
} as const

/** Routes of an environment's deployed versions. Each write is one publication and applies fully or not at all. */
export const deploymentRoutes = {
  listDeployments: {
    ...read,
    path: '/environments/{environmentId}/deployments',
    summary: 'List deployed versions',
    params: EnvironmentParams,
    query: ListQuery,
    reply: DeploymentPage,
    errors: ['not_found', 'invalid_cursor'],
  },
  deploy: {
    ...publish,
    path: '/environments/{environmentId}/deployments',
    audit: { action: 'configuration.deploy', target: 'environment' },
    summary: 'Deploy versions, or remove prompts and policies from the environment',
    body: NewDeployment,
  },
  promote: {
    ...publish,
    path: '/environments/{environmentId}/deployments/promote',
    audit: { action: 'configuration.promote', target: 'environment' },
    summary: 'Promote versions deployed in another environment of the workspace; items missing there stay unchanged',
    body: NewPromotion,
  },
  rollBack: {
    ...publish,
    path: '/environments/{environmentId}/deployments/rollback',
    audit: { action: 'configuration.roll_back', target: 'environment' },
    summary: 'Roll back one version; repeat to go further back',
    body: NewRollback,
  },
  listDeploymentChanges: {
    ...read,
    path: '/environments/{environmentId}/deployments/changes',
    summary: 'List what changed, who changed it and when, newest first',
    params: EnvironmentParams,
    query: DeploymentChangesQuery,
    reply: DeploymentChangePage,
    errors: ['not_found', 'invalid_cursor'],
  },
  listConfigurationClients: {
    ...read,
    path: '/environments/{environmentId}/clients',
    summary: 'List the clients of the runtime configuration and the revision that each has',
    params: EnvironmentParams,
    query: ConfigurationClientsQuery,
    reply: ConfigurationClientPage,
    errors: ['not_found', 'invalid_cursor'],
  },
} as const satisfies Record<string, OperatorRoute>
