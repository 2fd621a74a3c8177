/** autocannon, in a process of its own. Every reply must have the status and the body that are expected. */
import autocannon from 'autocannon'
import { answer } from '../child.ts'

export interface HttpLoad {
  url: string
  headers?: Record<string, string>
  connections: number
  seconds: number
  status: number
  /** The whole body of each reply. */
  body?: string
}

export interface HttpResult {
  requests: number
  perSecond: number
  p99Ms: number
}

const SAMPLE_MS = 100

answer<HttpLoad, HttpResult>(async ({ url, headers = {}, connections, seconds, status, body }) => {
  const result = await autocannon({
    url,
    headers,
    connections,
    duration: seconds,
    // It ends at the next sample.
    sampleInt: SAMPLE_MS,
    ...(body === undefined ? {} : { expectBody: body }),
  })
  const { errors, mismatches, statusCodeStats = {}, requests, duration, latency } = result
  const others = Object.keys(statusCodeStats).filter((code) => Number(code) !== status)
  if (errors > 0 || mismatches > 0 || others.length > 0 || requests.total === 0) {
    throw new Error(`${url}: ${errors} errors, ${mismatches} other bodies, statuses ${JSON.stringify(statusCodeStats)}`)
  }
  return { requests: requests.total, perSecond: requests.total / duration, p99Ms: latency.p99 }
})
