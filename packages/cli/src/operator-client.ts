/** The operator API as a typed client: one call per row of the contract's table. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { IDEMPOTENCY_KEY_HEADER } from '@tacho/contract/operator/idempotency.ts'
import { OPERATOR_PREFIX, OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type { Route } from '@tacho/contract/route.ts'
import type { Static, TSchema } from 'typebox'
import { isRetryableStatus } from './retry.ts'
import { refusal, unreachable } from './server-trouble.ts'
import { failed, Stop } from './stop.ts'

type Routes = typeof OPERATOR_ROUTES
export type OperatorRoute = keyof Routes
type Part<Name extends OperatorRoute, Key extends 'params' | 'query' | 'body'> =
  Routes[Name] extends Record<Key, infer Schema extends TSchema> ? Static<Schema> : never
export type Reply<Name extends OperatorRoute> = Static<Routes[Name]['reply']>

/** What the pages of a list hold. */
export type Item<Name extends OperatorRoute> = Reply<Name> extends { items: (infer Element)[] } ? Element : never

export interface Input<Name extends OperatorRoute> {
  params?: Part<Name, 'params'>
  query?: Part<Name, 'query'>
  body?: Part<Name, 'body'>
}

const TIMEOUT_MS = 30_000
/** The server may come to know of a lost connection later than we do. */
const PAUSE_MS = 250

/** No answer (status null) or one that is an error: kept apart because a caller may know what to do with it. */
export class Refused extends Stop {
  readonly status: number | null

  constructor(status: number | null, sentence: string) {
    super(1, sentence)
    this.name = 'Refused'
    this.status = status
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    return this.status === null || isRetryableStatus(this.status)
  }
}

export class OperatorClient {
  readonly url: string
  readonly #token: string

  /** `url` as readUrl gives it. */
  constructor(url: string, token: string) {
    this.url = url
    this.#token = token
  }

  async call<Name extends OperatorRoute>(name: Name, input: Input<Name> = {}): Promise<Reply<Name>> {
    const text = await this.callText(name, input)
    try {
      return JSON.parse(text) as Reply<Name>
    } catch {
      throw failed(`${this.url} did not answer with JSON: is it Tacho that listens there?`)
    }
  }

  /** The reply as it came: payloads inside it are the very text that was recorded. */
  async callText<Name extends OperatorRoute>(name: Name, input: Input<Name> = {}): Promise<string> {
    const response = await this.#send(name, input, AbortSignal.timeout(TIMEOUT_MS))
    return this.#text(response)
  }

  /** The reply before its body was read; that may take as long as it needs. */
  async callResponse<Name extends OperatorRoute>(
    name: Name,
    input: Input<Name> = {},
    signal: AbortSignal | null = null,
  ): Promise<Response> {
    return this.#send(name, input, signal)
  }

  /** Every item of a list, page after page. */
  async *items<Name extends OperatorRoute>(name: Name, input: Input<Name>): AsyncGenerator<Item<Name>> {
    let cursor: string | null = null
    do {
      const query = { ...(input.query as object | undefined), ...(cursor === null ? {} : { cursor }) } as Part<
        Name,
        'query'
      >
      const page = (await this.call(name, { ...input, query })) as { items: Item<Name>[]; nextCursor: string | null }
      yield* page.items
      cursor = page.nextCursor
    } while (cursor !== null)
  }

  async allItems<Name extends OperatorRoute>(name: Name, input: Input<Name>): Promise<Item<Name>[]> {
    const all: Item<Name>[] = []
    for await (const item of this.items(name, input)) all.push(item)
    return all
  }

  async #send<Name extends OperatorRoute>(
    name: Name,
    input: Input<Name>,
    signal: AbortSignal | null,
  ): Promise<Response> {
    const { method, path, status } = OPERATOR_ROUTES[name]
    const key = isCreation(name) ? randomUUID() : null
    const address = this.url + OPERATOR_PREFIX + filled(path, input.params ?? {}) + queryText(input.query ?? {})
    const send = () =>
      fetch(address, {
        method,
        signal,
        redirect: 'manual',
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...(key === null ? {} : { [IDEMPOTENCY_KEY_HEADER]: key }),
          ...(input.body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: input.body === undefined ? null : JSON.stringify(input.body),
      })
    let response: Response
    try {
      // With its key a creation can be repeated: it creates nothing twice.
      response = await (key === null ? send() : send().catch((error: unknown) => this.#again(error, send, signal)))
    } catch (error) {
      throw new Refused(null, unreachable(this.url, error))
    }
    if (response.status === status) return response
    throw new Refused(response.status, refusal(this.url, response.status, await this.#text(response)))
  }

  async #again(error: unknown, send: () => Promise<Response>, signal: AbortSignal | null): Promise<Response> {
    if (signal?.aborted) throw error
    await sleep(PAUSE_MS)
    return send()
  }

  async #text(response: Response): Promise<string> {
    try {
      return await response.text()
    } catch (error) {
      throw new Refused(null, unreachable(this.url, error))
    }
  }
}

function isCreation(name: OperatorRoute): boolean {
  const { headers } = OPERATOR_ROUTES[name] as Route
  return headers !== undefined && IDEMPOTENCY_KEY_HEADER in headers.properties
}

function filled(path: string, params: object): string {
  const values = params as Record<string, string>
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ''))
}

function queryText(query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length === 0
    ? ''
    : `?${new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString()}`
}
