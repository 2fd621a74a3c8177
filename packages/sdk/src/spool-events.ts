/** Keeps queued events in a spool. */
import type { Diagnostics } from './diagnostics.ts'
import { PROTECTED_TYPES } from './event.ts'
import type { Settings } from './options.ts'
import { QueuedEvent } from './queue.ts'
import type { Runtime } from './runtime.ts'
import type { Sender } from './sender.ts'
import { openSpool, type SpoolUser } from './spool.ts'
import { byteLength } from './text.ts'
import type { Ids } from './uuid.ts'

interface Parts {
  settings: Settings
  runtime: Runtime
  ids: Ids
  diagnostics: Diagnostics
  sender: Sender
}

export function spoolEvents(folder: string, parts: Parts): Promise<void> {
  const { settings, diagnostics, sender } = parts
  const user: SpoolUser<{ eventId: unknown; eventType: unknown }> = {
    suffix: '.events',
    isOpen: () => sender.isOpen,
    hasRoom() {
      const { queued, queuedBytes } = sender.held
      return queued < settings.maxQueuedEvents / 2 && queuedBytes < settings.maxQueuedBytes / 2
    },
    keepIn: (keeper) => sender.keepIn(keeper),
    idOf: ({ eventId, eventType }) =>
      typeof eventId === 'string' && typeof eventType === 'string' ? eventId : undefined,
    restore({ id, json, fields }) {
      diagnostics.count('recorded')
      diagnostics.count('recovered')
      const isProtected = PROTECTED_TYPES.has(fields.eventType as string)
      const sequence = sender.nextSequence()
      sender.add(new QueuedEvent({ id, isProtected, sequence }, () => [json.slice(0, -1), ''], byteLength(json)), true)
    },
  }
  return openSpool(folder, user, parts)
}
