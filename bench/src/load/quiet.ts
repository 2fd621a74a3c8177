/** The process of a quiet tenant: records a few events, repeats after the answer, and measures each request. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { answer } from '../child.ts'
import { connect, requestHead, type Connection } from './connection.ts'

export type Quiet = { begin: true; url: string; headers: Record<string, string> } | { begin: false }

export interface QuietTimes {
  /** Milliseconds per request. */
  took: number[]
}

const PAUSE_MS = 5
const EVENTS = 10

let isOver = false
let recording: Promise<QuietTimes> = Promise.resolve({ took: [] })

answer<Quiet, QuietTimes>(async (asked) => {
  if (asked.begin) {
    isOver = false
    recording = record(asked.url, asked.headers)
    recording.catch(() => undefined)
    return { took: [] }
  }
  isOver = true
  return recording
})

async function record(url: string, headers: Record<string, string>): Promise<QuietTimes> {
  const connection = await connect(url)
  const took: number[] = []
  try {
    do {
      const from = performance.now()
      await send(connection, url, headers)
      took.push(performance.now() - from)
      await sleep(PAUSE_MS)
    } while (!isOver)
  } finally {
    connection.close()
  }
  return { took }
}

async function send(connection: Connection, url: string, headers: Record<string, string>): Promise<void> {
  const timestamp = Date.now()
  const events = Array.from({ length: EVENTS }, (_, n) => ({
    eventId: randomUUID(),
    clientId: 'quiet',
    runId: `quiet-${timestamp}`,
    agentName: 'Quiet agent',
    eventType: 'AGENT_STEP',
    label: `step ${n}`,
    timestamp,
    payload: { text: 'a step of a quiet tenant' },
  }))
  const body = Buffer.from(JSON.stringify(events))
  const head = requestHead('POST', `${url}/openapi/v1/events/batch`, {
    ...headers,
    'content-type': 'application/json',
    'content-length': body.length,
  })
  const { status, body: reply } = await connection.request([head, body])
  if (status !== 200) throw new Error(`A quiet tenant's batch: ${status} ${reply.toString().slice(0, 300)}`)
}
