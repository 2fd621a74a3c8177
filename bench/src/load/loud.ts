/** The process that repeats a worst request. */
import { request as send } from 'node:http'
import { answer } from '../child.ts'
import { addressOf, type Row } from '../../../packages/server/test/setup/route-samples.ts'
import { ALL_ROWS, worstRequests } from './worst-bodies.ts'
import type { WorstRequest } from './worst-own.ts'

export interface Loud {
  url: string
  row: string
  /** Index of the request among the endpoint's worst ones. */
  request: number
  headers: Record<string, string>
  ids: Record<string, string>
}

export interface Sent {
  status: number
}

/** Longest wait for an answer. */
const ANSWER_MS = 20_000
/** A stream is read for this long. */
const STREAM_MS = 300

let made: { key: string; requests: WorstRequest[]; others: Generator<WorstRequest, undefined> } | undefined

function requestOf(row: Row, key: string, at: number): WorstRequest {
  if (made?.key !== key) made = { key, requests: [], others: worstRequests(row) }
  const { requests, others } = made
  while (requests.length <= at) {
    const { value } = others.next()
    if (!value) throw new Error(`${key} has no request ${at}`)
    requests.push(value)
  }
  return requests[at] as WorstRequest
}

answer<Loud, Sent>(async ({ url, row: key, request, headers, ids }) => {
  const row = ALL_ROWS.find(({ prefix, name }) => `${prefix} ${name}` === key)
  if (!row) throw new Error(`There is no row ${key}`)
  const chosen = requestOf(row, key, request)
  let query = chosen.query ?? {}
  let status = 0
  for (let page = 0; page <= (chosen.pages ?? 0); page++) {
    const target = url + addressOf(row, ids, query)
    const reply = await ask(target, row.route.method, { ...headers, ...chosen.headers }, chosen, row.route.replyType)
    status = reply.status
    const next = chosen.pages ? (JSON.parse(reply.text) as { nextCursor?: string | null }).nextCursor : null
    if (!next) break
    query = { ...query, cursor: next }
  }
  return { status }
})

async function ask(
  target: string,
  method: string,
  headers: Record<string, string>,
  { body, chunkBytes }: WorstRequest,
  type: string | undefined,
): Promise<{ status: number; text: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; text: string }>()
  const isStream = type === 'text/event-stream'
  const length = body && chunkBytes === undefined ? { 'content-length': body.length } : {}
  const sent = send(target, { method, headers: { ...headers, ...length } }, (reply) => {
    let text = ''
    reply
      .setEncoding('utf8')
      .on('data', (piece: string) => (text += piece))
      .on('end', () => resolve({ status: reply.statusCode ?? 0, text }))
      .on('error', () => undefined)
      .on('close', () => resolve({ status: reply.statusCode ?? 0, text }))
    if (isStream) setTimeout(() => reply.destroy(), STREAM_MS)
  })
  sent.on('error', reject).setTimeout(ANSWER_MS, () => sent.destroy(new Error('no answer')))
  if (body && chunkBytes !== undefined) {
    for (let at = 0; at < body.length; at += chunkBytes) sent.write(body.subarray(at, at + chunkBytes))
  } else if (body) sent.write(body)
  sent.end()
  return promise.catch((error: Error) => ({ status: error.message === 'no answer' ? -1 : -2, text: '{}' }))
}
