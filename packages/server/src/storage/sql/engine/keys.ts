/** Long texts are keyed by their SHA-256: PostgreSQL refuses index rows over 2,704 bytes. */
import { hash } from 'node:crypto'

export function textKey(text: string): string {
  return hash('sha256', text)
}

/** An agent is identified by its external id, or else by its name. The two have separate key spaces. */
export function agentKey(agentId: string | null, agentName: string): string {
  return textKey(agentId === null ? `name:${agentName}` : `id:${agentId}`)
}

/** Ids never contain NUL, so it can separate them. */
export function rejectionKey(runId: string, eventId: string): string {
  return textKey(`${runId}\0${eventId}`)
}

export function clientRecordKey(sdkInstanceId: string, clientRecordId: string): string {
  return textKey(`${sdkInstanceId}\0${clientRecordId}`)
}

/** The key of the record by which a client claims its approval. */
export const claimKey = (clientId: string, approvalId: string): string => clientRecordKey(clientId, `run-${approvalId}`)

/** The key of a failure that the service detected. It begins with NUL, as no client's key does. */
export function serviceRecordKey(runId: string, eventId: string | null, detectionType?: string): string {
  // Only the service reports this type, so it has a separate key. Other failures share a key with the client's report of them.
  const about = detectionType === 'DECISION_DIFFERS' ? `\0${detectionType}` : ''
  return textKey(`\0${runId}\0${eventId ?? ''}${about}`)
}

interface KeyedRequest {
  clientId: string
  clientRequestId: string
  /** Null: the request is older than recorded families. */
  keyFamily: string | null
}

/** Includes the key family, so that families never share a request. */
export function requestKey({ clientId, clientRequestId, keyFamily }: KeyedRequest): string {
  return textKey([clientId, clientRequestId, ...(keyFamily === null ? [] : [keyFamily])].join('\0'))
}

/** A withdrawn request gets this key, so that the next request with its id can have the original key. */
export function withdrawnKey({ clientId, clientRequestId, keyFamily }: KeyedRequest, id: string): string {
  return textKey([clientId, clientRequestId, keyFamily ?? '', id].join('\0'))
}

export const SHORT_CHARS = 200

/** Cache key of a text: a long text is hashed. Client texts never contain NUL. */
export function shortText(text: string): string {
  return text.length <= SHORT_CHARS ? text : `\0${textKey(text)}`
}
