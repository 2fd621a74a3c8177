import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Tag } from './tags.ts'

export const SCOPES = ['events:write', 'config:read', 'policies:read', 'usage:read'] as const
export type Scope = (typeof SCOPES)[number]

/** One endpoint. The server, the OpenAPI document and the client checks all use it. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Path below the prefix; parameters in braces, as in OpenAPI. */
  readonly path: string
  readonly summary: string
  /** Details beyond the summary. Access and limits are omitted: the document derives them from this row. */
  readonly description?: string
  readonly tag: Tag
  /**
   * The API key must have all of these scopes. Operator API routes have none because operator tokens have no scopes.
   */
  readonly scopes: readonly Scope[]
  readonly params?: TObject
  readonly query?: TObject
  /** Somebody else adds parameters of their own. Else the operator API refuses those that `query` does not name. */
  readonly openQuery?: true
  /** Headers other than those for authentication and the body, by their documented names. */
  readonly headers?: TObject
  /** The operator API refuses members that it does not name (`closedBodies`); the public interface ignores them. */
  readonly body?: TSchema
  /** Maximum size of the decoded body in bytes. */
  readonly bodyBytes?: number
  readonly status: 200 | 201 | 202 | 303
  readonly reply: TSchema
  /** Approximate maximum reply size in bytes, if larger than the limit for lists. 0: few are built at once anyway. */
  readonly replyBytes?: number
  /** The reply has an ETag. If-None-Match with that ETag gets 304. */
  readonly tagged?: true
  /** Secret member of the reply. Only this reply shows it; it is stored nowhere. */
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

/** Without it, a misspelt `expiresAt` would make a token that never expires. Objects without fixed members stay open. */
export function closedBodies<Routes extends Record<string, Route>>(routes: Routes): Routes {
  const rows = Object.entries(routes).map(([name, route]) => {
    const { body } = route
    return [name, body === undefined ? route : { ...route, body: { ...closed(body as Part), $id: (body as Part).$id } }]
  })
  return Object.fromEntries(rows) as Routes
}

/** A nested schema loses its name, because replies have the open one. */
function closed({ $id: _, ...part }: Part): Part {
  const { properties, items, anyOf } = part
  const members = Object.entries(properties ?? {}).map(([name, member]) => [name, closed(member)])
  return {
    ...part,
    ...(properties && { properties: Object.fromEntries(members) as Record<string, Part>, additionalProperties: false }),
    ...(items && { items: closed(items) }),
    ...(anyOf && { anyOf: anyOf.map(closed) }),
  }
}
