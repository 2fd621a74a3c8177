import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { ROLES } from '../engine/words.ts'

export const SCOPES = ['events:write', 'config:read', 'policies:read', 'usage:read'] as const
export type Scope = (typeof SCOPES)[number]

/** An endpoint. The server, the OpenAPI document and the client checks all use it. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Path below the prefix; parameters in braces, as in OpenAPI. */
  readonly path: string
  readonly summary: string
  /** Details beyond the summary. Access and limits are omitted: the document derives them from this row. */
  readonly description?: string
  readonly tag: Tag
  /**
   * The API key must have all of these scopes. Operator API routes have none, because operator tokens have no scopes.
   */
  readonly scopes: readonly Scope[]
  readonly params?: TObject
  readonly query?: TObject
  /**
   * Allows parameters that another program adds. Otherwise the operator API rejects parameters that `query` does not
   * name.
   */
  readonly openQuery?: true
  /** Headers by their documented names, without those for authentication and the body. */
  readonly headers?: TObject
  /**
   * The operator API refuses members that the schema does not name (`closedBodies`); the public interface ignores them.
   */
  readonly body?: TSchema
  /** Maximum size of the decoded body in bytes. */
  readonly bodyBytes?: number
  readonly status: 200 | 201 | 202 | 303
  readonly reply: TSchema
  /**
   * Approximate maximum size of the reply in bytes, if larger than the limit for lists. 0: not counted, because few
   * such replies are built at once.
   */
  readonly replyBytes?: number
  /** The reply has an ETag. If-None-Match with that ETag gets 304. */
  readonly tagged?: true
  /** Name of the secret member of the reply. Only this reply shows it, and the store does not have it. */
  readonly shownOnce?: string
  /** Media type of the reply; JSON by default. */
  readonly replyType?: string
  /** Messages of a server-sent event stream: event name to data schema. */
  readonly events?: Readonly<Record<string, TSchema>>
  /** Errors in addition to those that route-errors.ts adds. */
  readonly errors: readonly ErrorCode[]
}

interface Part {
  readonly $id?: string
  readonly properties?: Readonly<Record<string, Part>>
  readonly items?: Part
  readonly anyOf?: readonly Part[]
}

/**
 * Refuses unknown members: a misspelt `expiresAt` would create a token that never expires. Objects without fixed
 * members stay open.
 */
export function closedBodies<Routes extends Record<string, Route>>(routes: Routes): Routes {
  const rows = Object.entries(routes).map(([name, route]) => {
    const { body } = route
    return [name, body === undefined ? route : { ...route, body: { ...closed(body as Part), $id: (body as Part).$id } }]
  })
  return Object.fromEntries(rows) as Routes
}

/** A closed nested schema loses its name, because replies use the open one under that name. */
function closed({ $id: _, ...schemaPart }: Part): Part {
  const { properties, items, anyOf } = schemaPart
  const members = Object.entries(properties ?? {}).map(([name, member]) => [name, closed(member)])
  return {
    ...schemaPart,
    ...(properties && { properties: Object.fromEntries(members) as Record<string, Part>, additionalProperties: false }),
    ...(items && { items: closed(items) }),
    ...(anyOf && { anyOf: anyOf.map(closed) }),
  }
}

/** Tags that group the endpoints in the documents, most useful first. */
export const TAGS = {
  Events: 'What agents did. Clients send events in batches; each event is validated separately.',
  Runs: 'Agent executions: lists, details, timelines and usage.',
  Scores: 'What people, users and programs say of runs and their steps.',
  Search: 'Search over the payloads of events, where it is switched on.',
  Alerts: 'Rules about runs, approvals and costs that tell webhooks, and budgets.',
  Costs: 'Prices of models, for estimates of what calls cost.',
  Issues: 'Recurring problems, grouped by stable facts, and the records behind them.',
  Approvals: 'Tool calls that a person must approve before they run.',
  'Runtime configuration': 'The deployed prompts and policies for the agents of an environment.',
  Prompts: 'Prompts and their versions. A version never changes.',
  Policies: 'Policies, their versions, and simulations on recorded tool calls.',
  Deployments: 'Which versions of prompts and policies are deployed in an environment.',
  Webhooks: 'Signed messages about approvals and issues to other programs.',
  Tenants: 'Workspaces and their environments.',
  Retention: 'How long things are kept, what is removed, and runs that are kept forever.',
  'API keys': 'Credentials for agents. A key selects the environment.',
  'Operator tokens': 'Credentials for scripts.',
  Operators: 'People: their roles and invitations.',
  'Sign-in': 'How people start and end sessions.',
  Me: 'The caller: identity, permissions, own sessions and own password.',
  Notifications: 'Notifications that a person gets in their browsers, and quiet hours.',
  Erasures: 'What operators erased on request, with its receipts.',
  'Audit log': 'Who did what, and when. Entries never change.',
  Doctor: 'Checks of the installation, and the history of one event.',
  Operation: 'Running the installation itself.',
} as const

export type Tag = keyof typeof TAGS

export type Role = (typeof ROLES)[number]

/**
 * Who may call an endpoint: anyone; anyone signed in; anyone with the role in the workspace that the path's workspaceId
 * or environmentId names; or an owner of the whole installation.
 */
export type Access = 'anyone' | 'signed-in' | Role | 'installation'

/** An endpoint of the operator API. */
export interface OperatorRoute extends Route {
  readonly access: Access
  /** Audit entry of the route: `<noun>.<verb>`, and the kind of the target. */
  readonly audit?: { readonly action: string; readonly target: string }
}
