/** The types of one call, derived from its row of a routes table: what a caller must give, and what can come back. */
import type { Problem } from '@tacho/contract/web/errors.ts'
import type { Route } from '@tacho/contract/web/route.ts'
import type { ErrorOf } from '@tacho/contract/web/route-errors.ts'
import type { Static, TSchema } from 'typebox'
import type { JsonText } from './json-text.ts'

/** Calls one endpoint. Resolves even if the call fails; rejects only for programming errors. */
export type Call<R extends Route> = (...callArguments: Arguments<R>) => Promise<Result<R>>

/** One call per row of a table, by name. Rows that only redirect a browser are left out. */
export type Client<Routes extends Record<string, Route>> = {
  readonly [Name in keyof Routes as Routes[Name]['status'] extends 303 ? never : Name]: Call<Routes[Name]>
}

type Arguments<R extends Route> =
  {} extends Input<R> ? [input?: Input<R>, options?: CallOptions] : [input: Input<R>, options?: CallOptions]

export interface CallOptions {
  /** Ends the call or stream at once. */
  signal?: AbortSignal | undefined
  /**
   * Timeout in milliseconds: of the whole reply; for bytes, until they start; for a stream, until it starts and between
   * messages.
   */
  timeoutMs?: number | undefined
}

/** The arguments of a call: `params`, `query`, `headers` and `body`, if its row has them. */
export type Input<R extends Route> = Part<'params', SchemaAt<R, 'params'>> &
  Part<'query', SchemaAt<R, 'query'>> &
  Part<'headers', SchemaAt<R, 'headers'> & Conditional<R>> &
  Part<'body', R extends { body: infer Body extends TSchema } ? Static<Body> | JsonText : unknown>

type SchemaAt<R extends Route, Key extends 'params' | 'query' | 'headers'> =
  R extends Record<Key, infer Schema extends TSchema> ? Loose<Static<Schema>> : unknown

/** Rows with an ETag answer 304 if it matches this one. */
type Conditional<R extends Route> = R extends { tagged: true } ? { 'If-None-Match'?: string | undefined } : unknown

type Part<Key extends string, Value> = unknown extends Value
  ? { [K in Key]?: never }
  : {} extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value }

/** An optional member may be undefined; it is then left out of the request. */
type Loose<Value> = { [K in keyof Value]: {} extends Pick<Value, K> ? Value[K] | undefined : Value[K] }

/** The result of a call. `ok` separates success from the rest; `code` separates the errors. */
export type Result<R extends Route> = Success<R> | Refusal<ErrorOf<R>> | Failure

export type Success<R extends Route> =
  | Answered<R['status'], Value<R>>
  | (R extends { tagged: true } ? Unchanged : never)

interface Answered<Status extends number, Body> {
  readonly ok: true
  readonly status: Status
  readonly value: Body
  /** The JSON text as received, in which recorded data keeps every digit. Empty for bytes and streams. */
  readonly text: string
  readonly headers: Headers
}

/** If-None-Match names the current version, so the reply has no body. */
type Unchanged = Answered<304, null>

/** The value of a successful call: the reply's JSON, its bytes, or the messages of a stream. */
export type Value<R extends Route> = R extends { events: infer Messages extends Record<string, TSchema> }
  ? AsyncIterable<Message<Messages>>
  : R extends { replyType: string }
    ? ReadableStream<Uint8Array>
    : Static<R['reply']>

/** A message of a stream, distinguished by its event. A newer service may send others; skip those you do not know. */
type Message<Messages extends Record<string, TSchema>> = {
  [Name in keyof Messages & string]: { readonly event: Name; readonly data: Static<Messages[Name]> }
}[keyof Messages & string]

/** The service answered with an error. A newer service may send a code that is not in the type. */
export interface Refusal<Code extends string = string> {
  readonly ok: false
  readonly reason: 'refused'
  readonly code: Code
  readonly status: number
  readonly problem: Omit<Problem, 'code'> & { readonly code: Code }
  /** Earliest time to retry, from Retry-After; null if the service does not say. */
  readonly retryAfterMs: number | null
  /** Whether retrying the same request may succeed. */
  readonly temporary: boolean
}

/** The service did not answer. */
export interface Failure {
  readonly ok: false
  /**
   * no_answer: the connection failed; timeout, aborted: the call was cancelled; too_large: the reply has more bytes
   * than the client accepts; not_tacho: something else answered; no_address: a path parameter is empty, `.` or `..`,
   * which an address cannot contain.
   */
  readonly reason: 'no_answer' | 'timeout' | 'aborted' | 'too_large' | 'not_tacho' | 'no_address'
  readonly code: null
  /** Status of the answer, if any. */
  readonly status: number | null
  /** The error from fetch, for people. */
  readonly cause: unknown
  readonly retryAfterMs: number | null
  readonly temporary: boolean
}
