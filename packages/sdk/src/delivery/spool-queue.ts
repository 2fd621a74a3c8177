import type { Diagnostics } from './diagnostics.ts'
import { PROTECTED_TYPES } from '../recording/event.ts'
import type { Settings } from '../options.ts'
import { nameOf } from '../recording/json.ts'
import { QueuedItem, type Bounds } from './queue.ts'
import type { Sender } from './sender.ts'
import { openSpool, type SpoolParts } from './spool.ts'
import { byteLength } from '../recording/text.ts'

/** Description of a spooled queue: the ending of its files, the field with its id, and the counts of its sender. */
export interface KeptQueue {
  readonly suffix: '.events' | '.issues'
  readonly id: 'eventId' | 'clientRecordId'
  readonly sender: Sender
  readonly bounds: Pick<Bounds, 'maxQueuedEvents' | 'maxQueuedBytes'>
  readonly counts: Pick<Diagnostics, 'count'>
}

/** Resolves when the queue has the items of dead processes, or is full. */
export function spoolQueue(
  folder: string,
  { suffix, id, sender, bounds, counts }: KeptQueue,
  parts: SpoolParts,
): Promise<void> {
  return openSpool<{ eventId: unknown; eventType: unknown; clientRecordId: unknown }>(
    folder,
    {
      suffix,
      isOpen: () => sender.isOpen,
      hasRoom() {
        const { queued, queuedBytes } = sender.held
        return queued < bounds.maxQueuedEvents / 2 && queuedBytes < bounds.maxQueuedBytes / 2
      },
      keepIn: (keeper) => sender.keepIn(keeper),
      idOf({ [id]: eventId, eventType }) {
        return typeof eventId === 'string' && (id !== 'eventId' || typeof eventType === 'string') ? eventId : undefined
      },
      restore({ id, json, fields: { eventType } }) {
        counts.count('recorded')
        counts.count('recovered')
        const isProtected = PROTECTED_TYPES.has(eventType as string)
        const identity = { id, isProtected, sequence: sender.nextSequence() }
        sender.add(new QueuedItem(identity, () => [json.slice(0, -1)], byteLength(json)), true)
      },
    },
    parts,
  )
}

/** Opens the folder before it returns. Never rejects. */
export async function spoolEvents(
  folder: string,
  sender: Sender,
  parts: SpoolParts & { readonly settings: Settings; readonly diagnostics: Diagnostics },
): Promise<void> {
  try {
    const { settings: bounds, diagnostics: counts } = parts
    await spoolQueue(folder, { suffix: '.events', id: 'eventId', sender, bounds, counts }, parts)
  } catch (error) {
    parts.diagnostics.report('error', 'spool_failed', `The spool cannot be used here (${nameOf(error)}).`)
  }
}
