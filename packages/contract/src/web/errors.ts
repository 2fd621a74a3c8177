import Type, { type Static } from 'typebox'

/**
 * Every error code, with its status, its title and whether a retry of the same request may succeed. Replies are RFC
 * 9457 problem details. A test compares this table with docs/errors.md.
 */
export const ERRORS = {
  invalid_request: { status: 400, retryable: false, title: 'The request does not match the contract' },
  invalid_json: { status: 400, retryable: false, title: 'The body is not valid JSON' },
  invalid_utf8: { status: 400, retryable: false, title: 'The body is not valid UTF-8' },
  invalid_encoding: { status: 400, retryable: false, title: 'The body could not be decompressed' },
  invalid_cursor: { status: 400, retryable: false, title: 'The cursor is damaged or belongs to another list' },
  unauthenticated: { status: 401, retryable: false, title: 'The key or token is missing or invalid' },
  forbidden: { status: 403, retryable: false, title: 'The key lacks a required scope' },
  not_found: { status: 404, retryable: false, title: 'The resource does not exist' },
  method_not_allowed: { status: 405, retryable: false, title: 'The address exists, but not with this method' },
  request_timeout: { status: 408, retryable: true, title: 'The request took too long to arrive' },
  conflict: { status: 409, retryable: false, title: 'The request conflicts with what is stored' },
  body_too_large: { status: 413, retryable: false, title: 'The body is too large' },
  uri_too_long: { status: 414, retryable: false, title: 'The address is too long' },
  unsupported_media_type: { status: 415, retryable: false, title: 'The body must be JSON in a supported encoding' },
  rate_limited: { status: 429, retryable: true, title: 'The rate limit is exceeded' },
  headers_too_large: { status: 431, retryable: false, title: 'The request headers are too large' },
  internal: { status: 500, retryable: true, title: 'Something unexpected happened' },
  overloaded: { status: 503, retryable: true, title: 'The service is at capacity' },
  storage_unavailable: { status: 503, retryable: true, title: 'The store cannot be reached' },
  storage_full: { status: 503, retryable: true, title: 'The disk is nearly full; reads still work' },
  configuration_damaged: { status: 503, retryable: true, title: 'The stored configuration is damaged' },
  sign_in_unavailable: { status: 503, retryable: true, title: 'The identity provider cannot be reached' },
  shutting_down: { status: 503, retryable: true, title: 'The service is shutting down' },
} as const satisfies Record<string, { status: number; retryable: boolean; title: string }>

export type ErrorCode = keyof typeof ERRORS

/** Why one event of a batch was rejected permanently. */
export const REJECTIONS = {
  not_an_object: 'The item is not a JSON object',
  missing_field: 'A required field is missing',
  invalid_type: 'A field has the wrong type',
  empty: 'An id is empty',
  too_long: 'A text is too long',
  invalid_text: 'A text contains NUL or is not well-formed Unicode',
  timestamp_too_old: 'The timestamp is more than 30 days in the past',
  timestamp_too_new: 'The timestamp is more than 5 minutes in the future',
  payload_too_large: 'The payload is larger than 256 KiB',
  payload_too_deep: 'The payload is nested more than 200 levels deep',
  workspace_mismatch: "The workspaceId hint does not match the key's workspace",
  unreadable: 'An OpenTelemetry span or log record could not be read',
  unstorable: 'The store rejected the event',
  erased: 'An operator erased this event, or the run, session, agent or client that it belongs to',
} as const satisfies Record<string, string>

export type RejectionCode = keyof typeof REJECTIONS

/** Parts of an accepted event that were stored but not understood. */
export const WARNINGS = {
  usage_not_counted: 'Token counts in the payload were not understood and count as zero',
  cost_not_counted: 'The cost in the payload was not understood and counts as zero',
  outcome_not_understood: 'The outcome was not understood, so it did not close the run',
  score_not_understood: 'The score was not understood, so its run does not show it',
  payload_not_understood: 'A payload field breaks the convention for its event type',
} as const satisfies Record<string, string>

export type WarningCode = keyof typeof WARNINGS

/** Body of every error reply, `application/problem+json` (RFC 9457). */
export const Problem = Type.Object(
  {
    type: Type.String({ description: "Address of this error's documentation" }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.Enum(Object.keys(ERRORS) as ErrorCode[], {
      $id: 'ErrorCode',
      description: 'Stable machine-readable code',
    }),
    detail: Type.Optional(Type.String({ description: 'What was wrong with this request' })),
    requestId: Type.String({ description: 'Quote it when you report a problem with this reply' }),
    errors: Type.Optional(
      Type.Array(Type.Object({ path: Type.String(), message: Type.String() }), {
        description: 'The invalid fields',
      }),
    ),
    current: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        description: 'On a conflict: the current state of the resource',
      }),
    ),
  },
  { $id: 'Problem', description: 'An error, as RFC 9457 problem details' },
)
export type Problem = Static<typeof Problem>
