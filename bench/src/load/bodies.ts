import { BATCH_EVENTS, eventText, stepAt, type Variable } from './events.ts'
import { agentOf, bodiesOf, bodyOf, partOf, timeOf, variableOf, type Plot } from './shapes.ts'

/**
 * Makes the body of request `n` in a buffer that the next request overwrites. It writes only digits, to cost little: 20
 * µs per request, instead of 200 µs for new texts.
 */
export function bodyWriter(plot: Plot): (n: number) => Buffer {
  const bodies = Array.from({ length: bodiesOf(plot.shape) }, (_, body) => bodyTemplate(plot, body))
  return (n) => {
    const body = bodies[bodyOf(plot.shape, n)]
    if (body === undefined) throw new Error(`No body for request ${n}`)
    const { buffer, places } = body
    for (let index = 0; index < BATCH_EVENTS; index++) {
      const place = places[index]
      if (place === undefined) break
      const time = timeOf(plot, n, index)
      const { run } = partOf(plot.shape, n, index)
      // As in shapes.ts: an event id starts with the time and ends with the number of the request.
      writeHex(buffer, place.eventId, Math.floor(time / 0x1_0000), 8)
      writeHex(buffer, place.eventId + 9, time % 0x1_0000, 4)
      writeHex(buffer, place.eventId + 29, n, 7)
      writeHex(buffer, place.runId + 13, run, 8)
      writeHex(buffer, place.sessionId + 8, run, 8)
      writeHex(buffer, place.agentId + 6, agentOf(run), 2)
      writeDecimal(buffer, place.timestamp, Math.floor(time / 1e6), 7)
      writeDecimal(buffer, place.timestamp + 7, time % 1e6, 6)
    }
    return buffer
  }
}

/** The text of the first request of its kind, and the positions of the changing texts for each event. */
function bodyTemplate(plot: Plot, body: number) {
  const places: Record<keyof Variable, number>[] = []
  let text = ''
  for (let index = 0; index < BATCH_EVENTS; index++) {
    const variable = variableOf(plot, body, index)
    const { isFirst, outcome } = partOf(plot.shape, body, index)
    const event = eventText(stepAt(index, isFirst, outcome, plot.failed), variable)
    text += `${index === 0 ? '[' : ','}${event}`
    const placeOf = (name: keyof Variable) => text.length - event.length + event.indexOf(variable[name])
    const [eventId, runId, sessionId] = [placeOf('eventId'), placeOf('runId'), placeOf('sessionId')]
    places.push({ eventId, runId, sessionId, agentId: placeOf('agentId'), timestamp: placeOf('timestamp') })
  }
  return { buffer: Buffer.from(`${text}]`, 'latin1'), places }
}

// Both functions write numbers below 2 ** 31, for which V8's arithmetic is fast.

function writeHex(buffer: Buffer, start: number, value: number, width: number): void {
  let rest = value | 0
  for (let at = start + width - 1; at >= start; at--) {
    const digit = rest & 15
    buffer[at] = digit < 10 ? 0x30 + digit : 0x57 + digit
    rest >>= 4
  }
}

function writeDecimal(buffer: Buffer, start: number, value: number, width: number): void {
  let rest = value | 0
  for (let at = start + width - 1; at >= start; at--) {
    const next = (rest / 10) | 0
    buffer[at] = 0x30 + rest - next * 10
    rest = next
  }
}
