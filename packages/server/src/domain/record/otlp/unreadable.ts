/** A span or log record that cannot become an event. It names itself and the reason, in the reply and in `tacho doctor`. */
import { fit } from '@tacho/contract/engine/fit.ts'

export class Unreadable {
  readonly runId: string
  readonly id: string
  readonly name: string
  readonly reason: string

  constructor(names: { traceId?: unknown; spanId?: unknown; name?: unknown }, reason: string) {
    this.runId = shownName(names.traceId)
    this.id = shownName(names.spanId)
    this.name = shownName(names.name)
    this.reason = reason
  }
}

const NAME_CHARS = 80

const shownName = (value: unknown) => (typeof value === 'string' ? fit(value, NAME_CHARS) : '')

/** protobuf's messages quote the value, which may be long or secret: only their field is kept. */
export function unreadable(names: Record<string, unknown>, error: unknown): Unreadable {
  const message = error instanceof Error ? error.message : ''
  const field = /\bfield tacho\.otlp\.[\w.]*?\.(\w+)/.exec(message)?.[1]
  if (field !== undefined) return new Unreadable(names, `its ${field} cannot be read`)
  return new Unreadable(names, message.startsWith('its ') ? message : 'it cannot be decoded')
}
