/** Says in one sentence why a server could not be reached, or what it answered. */
import type { Failure, Refusal } from '@tacho/client/call.ts'
import { printable } from './output.ts'

const CAUSES = new Map(
  Object.entries({
    ECONNREFUSED: 'nothing listens there',
    ENOTFOUND: 'the name is not known',
    EAI_AGAIN: 'the name cannot be looked up just now',
    ECONNRESET: 'the connection was cut',
    UND_ERR_SOCKET: 'the connection was cut',
    ETIMEDOUT: 'it does not answer',
    UND_ERR_CONNECT_TIMEOUT: 'it does not answer',
    UND_ERR_HEADERS_TIMEOUT: 'it does not answer',
    TimeoutError: 'it does not answer in time',
    EHOSTUNREACH: 'there is no way to it',
    ENETUNREACH: 'there is no way to it',
    DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed: set NODE_EXTRA_CA_CERTS',
    SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed: set NODE_EXTRA_CA_CERTS',
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified: set NODE_EXTRA_CA_CERTS',
    CERT_HAS_EXPIRED: 'its certificate has expired',
    ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak https',
    ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak https',
  }),
)

/** A sentence about a call that failed. */
export function sentenceOf(url: string, result: Refusal | Failure): string {
  switch (result.reason) {
    case 'refused':
      return refusal(result.problem)
    case 'no_answer':
    case 'timeout':
    case 'aborted':
      return unreachable(url, result.cause)
    case 'not_tacho':
      return `${url} answered ${result.status}, and not as Tacho does: is the address right?`
    case 'too_large':
      return `${url} answered ${result.status} with more than this command can take: ask for less.`
    case 'no_address':
      return 'An id must not be empty, "." or "..": no address can hold it.'
  }
}

/** A sentence about a request that got no answer. */
export function unreachable(url: string, error: unknown): string {
  const code = errorCode(error)
  const cause = CAUSES.get(code) ?? `the request failed (${code})`
  return `No answer from ${url}: ${cause}. Start the server with \`tacho serve\`, or say where it is with TACHO_URL or --url.`
}

/** fetch wraps the error of the system, which for a name with several addresses wraps one per address. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'no reason given'
  if ('code' in error && typeof error.code === 'string') return error.code
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : error.cause
  if (inner !== undefined) return errorCode(inner)
  return error.name === 'TimeoutError' ? error.name : error.message
}

/** A sentence about an answer that is an error. */
function refusal({ code, title, detail = title, errors = [], requestId }: Refusal['problem']): string {
  const fields = errors
    .filter(({ message }) => !detail.includes(message))
    .map(({ path, message }) => `${path} ${message}`)
  const said = [detail, ...fields].map((text) => printable(text).replace(/\.$/, ''))
  const hint =
    code === 'unauthenticated'
      ? ': check TACHO_OPERATOR_TOKEN for operator commands, TACHO_API_KEY for import and demo'
      : ''
  return `${said.join('; ')}${hint} (${printable(code)}, request ${printable(requestId)}).`
}
