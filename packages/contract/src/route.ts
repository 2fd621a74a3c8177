import type { TObject, TSchema } from 'typebox'
import type { ErrorCode } from './errors.ts'
import type { Tag } from './tags.ts'

export const SCOPES = ['events:write', 'config:read', 'policies:read', 'usage:read'] as const
export type Scope = (typeof SCOPES)[number]

/** One endpoint: what the server serves, what the document describes, what clients are checked against. */
export interface Route {
  readonly method: 'GET' | 'POST'
  /** Below the prefix; parameters in braces, as in OpenAPI. */
  readonly path: string
  readonly summary: string
  /** More than the summary, where a caller must know more. Who may call it, and how much, follows from the row. */
  readonly description?: string
  readonly tag: Tag
  /** Scopes the API key must have, all of them. The operator API has none: its tokens are not scoped. */
  readonly scopes: readonly Scope[]
  readonly params?: TObject
  readonly query?: TObject
  /** Headers beside those of authentication and of the body, by their documented names. */
  readonly headers?: TObject
  readonly body?: TSchema
  /** Largest decoded body in bytes. */
  readonly bodyBytes?: number
  readonly status: 200 | 201 | 202 | 303
  readonly reply: TSchema
  /** About how many bytes a reply may have, where that is more than a list may have. */
  readonly replyBytes?: number
  /** The reply has an ETag; a request that names it in If-None-Match is answered with 304. */
  readonly tagged?: true
  /** Member of the reply that is a secret: it is shown by this reply alone, and kept nowhere. */
  readonly shownOnce?: string
  /** Media type of the reply; JSON when absent. */
  readonly replyType?: string
  /** Messages of a stream of server-sent events: the data of each, by the name of its event. */
  readonly events?: Readonly<Record<string, TSchema>>
  /** Errors beyond those that route-errors.ts adds to every row of its kind. */
  readonly errors: readonly ErrorCode[]
}
