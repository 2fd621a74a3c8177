/** The operator API for commands: a call returns its value, or ends the command with a sentence. */
import type { Failure, Input as CallInput, Refusal, Value } from '@tacho/client/call.ts'
import { createOperatorClient, type OperatorClient as Answers, type OperatorRoutes } from '@tacho/client/operator.ts'
import { throwing, type Throwing } from '@tacho/client/throwing.ts'
import { Stop } from './stop.ts'
import { printable } from './output.ts'

/** Input and result of the call with this name. */
export type Input<Name extends keyof Answers> = CallInput<OperatorRoutes[Name]>
export type Reply<Name extends keyof Answers> = Value<OperatorRoutes[Name]>

/** The environment to use if a command names none: an id, or `workspace/environment`. */
interface Defaults {
  environment?: string | undefined
  workspace?: string | undefined
}

export interface OperatorClient extends Throwing<Answers> {
  readonly url: string
  readonly defaults: Defaults
  /** The same calls with the full response, for `answered`. */
  readonly whole: Answers
}

/** The server sent an error response or none. A class, so that callers can recognise it. */
export class Refused extends Stop {
  readonly result: Refusal | Failure

  constructor(url: string, result: Refusal | Failure) {
    super(1, sentenceOf(url, result, 'operator token'))
    this.name = 'Refused'
    this.result = result
  }
}

/** Makes a client. `url` and `token` come from `readAccount`. */
export function operatorClient(url: string, token: string, defaults: Defaults = {}): OperatorClient {
  // Load it at the first call, because the help needs no client.
  const fetch: typeof globalThis.fetch = async (target, request) => {
    const { patientFetch } = await import('./patient-fetch.ts')
    return patientFetch()(target, request)
  }
  const whole = createOperatorClient({ url, token, fetch })
  return { ...throwing(whole, (result) => new Refused(url, result)), url, defaults, whole }
}

/** The successful result of a call, with text and headers of the response. */
export function answered<Answer extends { ok: true }>(url: string, result: Answer | Refusal | Failure): Answer {
  if (result.ok) return result
  throw new Refused(url, result)
}

/** Describes a failed call in one sentence. */

const CAUSES = new Map(
  Object.entries({
    ECONNREFUSED: 'the connection was refused',
    ENOTFOUND: 'the host name does not exist',
    EAI_AGAIN: 'the DNS lookup failed; it may work later',
    ECONNRESET: 'the connection was lost',
    UND_ERR_SOCKET: 'the connection was lost',
    // A packed reply that ended early.
    Z_BUF_ERROR: 'the connection was lost',
    ETIMEDOUT: 'the connection timed out',
    UND_ERR_CONNECT_TIMEOUT: 'the connection timed out',
    UND_ERR_HEADERS_TIMEOUT: 'the connection timed out',
    TimeoutError: 'the request timed out',
    EHOSTUNREACH: 'there is no network route to it',
    ENETUNREACH: 'there is no network route to it',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: set NODE_EXTRA_CA_CERTS',
    SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed: set NODE_EXTRA_CA_CERTS',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified: set NODE_EXTRA_CA_CERTS',
    CERT_HAS_EXPIRED: 'its certificate has expired',
    EPROTO: 'the TLS handshake failed: perhaps it does not speak https',
    ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak https',
    ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak https',
  }),
)

/** The kind of credential that a call sends. */
type Credential = 'operator token' | 'API key'

const CREDENTIALS: Record<Credential, string> = {
  'operator token': 'TACHO_OPERATOR_TOKEN, or the file of --token-file',
  'API key': 'TACHO_API_KEY',
}

/** Describes a failed call in a sentence. */
export function sentenceOf(url: string, result: Refusal | Failure, credential: Credential): string {
  switch (result.reason) {
    case 'refused':
      return refusal(result.problem, credential)
    case 'no_answer':
    case 'timeout':
    case 'aborted':
      return unreachable(url, result.cause)
    case 'not_tacho':
      return `${url} answered ${result.status}, but is not a Tacho server: check the address.`
    case 'too_large':
      return `${url} answered ${result.status} with too much data for this command: request less.`
    case 'no_address':
      return 'An id must not be empty, "." or "..".'
  }
}

/** Describes in a sentence why there was no response. */
export function unreachable(url: string, error: unknown): string {
  const code = errorCode(error)
  const cause = CAUSES.get(code) ?? `the request failed (${code})`
  return `No answer from ${url}: ${cause}. Start the server with \`tacho serve\`, or set its address with TACHO_URL or --url.`
}

/**
 * The code of the system error. fetch wraps that error; for a name with several addresses, it wraps one error per
 * address.
 */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason given'
  if ('code' in error && typeof error.code === 'string') return error.code
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : error.cause
  if (inner !== undefined) return errorCode(inner)
  return error.name === 'TimeoutError' ? error.name : error.message
}

/** Describes an error response in a sentence. */
function refusal(
  { code, title, detail = title, errors = [], requestId }: Refusal['problem'],
  credential: Credential,
): string {
  const fields = errors
    .filter(({ message }) => !detail.includes(message))
    .map(({ path, message }) => `${path} ${message}`)
  const problemTexts = [detail, ...fields].map((text) => printable(text).replace(/\.$/, ''))
  const hint = code === 'unauthenticated' ? `: check ${CREDENTIALS[credential]}` : ''
  return `${problemTexts.join('; ')}${hint} (${printable(code)}, request ${printable(requestId)}).`
}
