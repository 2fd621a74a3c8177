/** Reads server-sent events like a client. */
export interface ServerEvent {
  event: string
  data: unknown
}

export interface EventStream {
  status: number
  headers: Headers
  /** The next event; null when the stream has ended. Comments are counted, not returned. */
  next(): Promise<ServerEvent | null>
  /** Heartbeats so far. */
  comments(): number
  close(): void
}

export async function openEventStream(url: string, headers: Record<string, string>): Promise<EventStream> {
  const leaving = new AbortController()
  const reply = await fetch(url, { headers, signal: leaving.signal })
  const reader = (reply.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  let text = ''
  let comments = 0

  async function block(): Promise<string | null> {
    for (;;) {
      const end = text.indexOf('\n\n')
      if (end >= 0) {
        const found = text.slice(0, end)
        text = text.slice(end + 2)
        return found
      }
      const { done, value } = await reader.read()
      if (done) return null
      text += decoder.decode(value, { stream: true })
    }
  }

  return {
    status: reply.status,
    headers: reply.headers,
    async next() {
      for (;;) {
        const found = await block()
        if (found === null) return null
        const fields = found.split('\n').map((line) => line.split(/: ?(.*)/s) as [string, string])
        if (fields.some(([name]) => name === '')) comments += 1
        const field = (wanted: string) => fields.find(([name]) => name === wanted)?.[1]
        const event = field('event')
        if (event !== undefined) return { event, data: JSON.parse(field('data') ?? 'null') as unknown }
      }
    },
    comments: () => comments,
    close: () => leaving.abort(),
  }
}
