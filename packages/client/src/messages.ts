/** The messages of a stream of server-sent events, as they arrive. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import type { Wait } from './wait.ts'

/** A stream broke: its connection failed, it was silent too long, or a message was unreadable. Open it again. */
export class BrokenStream extends Error {
  constructor(cause: unknown) {
    super('The stream broke', { cause })
    this.name = 'BrokenStream'
  }
}

/**
 * Ends when the service ends the stream; throws BrokenStream when it breaks. Leaving the loop or aborting the call's
 * signal closes the connection.
 */
export async function* readMessages(
  body: ReadableStream<Uint8Array>,
  maxBytes: number,
  wait: Wait,
): AsyncGenerator<{ event: string; data: unknown }> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const arrived: EventSourceMessage[] = []
  const parser = createParser({
    maxBufferSize: maxBytes,
    onEvent: (message) => void arrived.push(message),
    onError(error) {
      if (error.type === 'max-buffer-size-exceeded') throw error
    },
  })
  try {
    for (;;) {
      for (const { event = 'message', data } of arrived.splice(0)) yield { event, data: JSON.parse(data) as unknown }
      wait.renew()
      const { done, value } = await reader.read()
      wait.end()
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
    }
  } catch (cause) {
    throw new BrokenStream(cause)
  } finally {
    wait.end()
    reader.cancel().catch(() => undefined)
  }
}
