/** Repeats one request, in a process of its own. Every reply must have the expected status and body. */
import { answer } from '../child.ts'
import { requestHead, withConnections } from './connection.ts'
import { paceRequests, type Paced } from './pace.ts'

export interface HttpLoad {
  url: string
  headers?: Record<string, string>
  connections: number
  seconds: number
  status: number
  /** The whole body of each reply. */
  body: string
}

answer<HttpLoad, Paced>(({ url, headers = {}, connections, seconds, status, body }) => {
  const [head, expected] = [requestHead('GET', url, headers), Buffer.from(body)]
  return withConnections(url, connections, (lanes) =>
    paceRequests(lanes, { seconds }, async (connection) => {
      const reply = await connection.request([head])
      if (reply.status !== status || !reply.body.equals(expected)) {
        throw new Error(`${url}: expected ${status}, got ${reply.status} ${reply.body.toString().slice(0, 500)}`)
      }
    }),
  )
})
