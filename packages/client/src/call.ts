/** The types of one call, made from its row of a routes table: what must be given, and what can come back. */
import type { Problem } from '@tacho/contract/errors.ts'
import type { Route } from '@tacho/contract/route.ts'
import type { ErrorOf } from '@tacho/contract/route-errors.ts'
import type { Static, TSchema } from 'typebox'
import type { JsonText } from './json-text.ts'

/** Calls one endpoint. Resolves whatever happens: it rejects only for mistakes of the program. */
export type Call<R extends Route> = (...given: Arguments<R>) => Promise<Result<R>>

/** One call for each row of a table, by its name. Rows that only redirect a browser are left out. */
export type Client<Routes extends Record<string, Route>> = {
  readonly [Name in keyof Routes as Routes[Name]['status'] extends 303 ? never : Name]: Call<Routes[Name]>
}

type Arguments<R extends Route> =
  {} extends Input<R> ? [input?: Input<R>, options?: CallOptions] : [input: Input<R>, options?: CallOptions]

export interface CallOptions {
  /** Ends the call, or the stream, at once. */
  signal?: AbortSignal | undefined
  /** Longest wait for the whole reply; of bytes for their start; of a stream for its start and from message to message. */
  timeoutMs?: number | undefined
}

/** What a call is given: `params`, `query`, `headers` and `body`, as far as its row has them. */
export type Input<R extends Route> = Part<'params', SchemaAt<R, 'params'>> &
  Part<'query', SchemaAt<R, 'query'>> &
  Part<'headers', SchemaAt<R, 'headers'> & Conditional<R>> &
  Part<'body', R extends { body: infer Body extends TSchema } ? Static<Body> | JsonText : unknown>

type SchemaAt<R extends Route, Key extends 'params' | 'query' | 'headers'> =
  R extends Record<Key, infer Schema extends TSchema> ? Loose<Static<Schema>> : unknown

/** Rows with an ETag answer 304 when it is the one that is named. */
type Conditional<R extends Route> = R extends { tagged: true } ? { 'If-None-Match'?: string | undefined } : unknown

type Part<Key extends string, Value> = unknown extends Value
  ? { [K in Key]?: never }
  : {} extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value }

/** An optional member may be given as undefined: it is left out then. */
type Loose<Value> = { [K in keyof Value]: {} extends Pick<Value, K> ? Value[K] | undefined : Value[K] }

/** What came of a call: `ok` tells success from the rest, `code` tells refusals apart. */
export type Result<R extends Route> = Success<R> | Refusal<ErrorOf<R>> | Failure

export type Success<R extends Route> =
  | Answered<R['status'], Value<R>>
  | (R extends { tagged: true } ? Unchanged : never)

interface Answered<Status extends number, Body> {
  readonly ok: true
  readonly status: Status
  readonly value: Body
  /** The JSON as it came: what was recorded is in it to the last digit. Empty for bytes and streams. */
  readonly text: string
  readonly headers: Headers
}

/** The caller has what its If-None-Match names. */
type Unchanged = Answered<304, null>

/** What a successful call gives: the reply's JSON, its bytes, or the messages of a stream. */
export type Value<R extends Route> = R extends { events: infer Messages extends Record<string, TSchema> }
  ? AsyncIterable<Message<Messages>>
  : R extends { replyType: string }
    ? ReadableStream<Uint8Array>
    : Static<R['reply']>

/** A message of a stream, told apart by its event. A newer service may send others: pass over what you do not know. */
type Message<Messages extends Record<string, TSchema>> = {
  [Name in keyof Messages & string]: { readonly event: Name; readonly data: Static<Messages[Name]> }
}[keyof Messages & string]

/** The service answered with an error. A newer service may answer with a code that is not in the type. */
export interface Refusal<Code extends string = string> {
  readonly ok: false
  readonly reason: 'refused'
  readonly code: Code
  readonly status: number
  readonly problem: Omit<Problem, 'code'> & { readonly code: Code }
  /** When the service wants to be asked again at the earliest; null when it does not say. */
  readonly retryAfterMs: number | null
  /** Whether the same request may succeed later. */
  readonly temporary: boolean
}

/** There is no answer of the service. */
export interface Failure {
  readonly ok: false
  /**
   * no_answer: the connection failed; timeout, aborted: the call was given up; too_large: the reply has more bytes than
   * the client takes; not_tacho: something else answered; no_address: a path parameter is empty, `.` or `..`, and no
   * address can hold it.
   */
  readonly reason: 'no_answer' | 'timeout' | 'aborted' | 'too_large' | 'not_tacho' | 'no_address'
  readonly code: null
  /** Of the answer, where there was one. */
  readonly status: number | null
  /** What fetch threw, for a person to read. */
  readonly cause: unknown
  readonly retryAfterMs: number | null
  readonly temporary: boolean
}
