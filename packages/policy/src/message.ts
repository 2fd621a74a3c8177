/**
 * The message of a policy to the model, the approver and the record. It is stored in the policy's description, after
 * the first line that begins with "Message:", because the policy object of the API has no member for it. Clients that
 * do not know this show it as part of the description.
 */
import { POLICY_LIMITS } from './limits.ts'

const START = /^Message:[ \t]*/m

/** The message of a policy with this description: one line; null if it has none. */
export function messageOf(description: string | null | undefined): string | null {
  if (typeof description !== 'string') return null
  const start = START.exec(description)
  if (!start) return null
  const text = description.slice(start.index + start[0].length).replace(/\s+/g, ' ')
  const characters = Array.from(text.trim())
  if (characters.length === 0) return null
  const most = POLICY_LIMITS.messageChars
  return characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`
}

/** The description without its message. */
export function purposeOf(description: string | null | undefined): string | null {
  if (typeof description !== 'string') return null
  const start = START.exec(description)
  return (start ? description.slice(0, start.index) : description).trim() || null
}

/** The description of a policy with this purpose and message. */
export function withMessage(purpose: string | null, message: string | null): string | null {
  const messageLine = message === null || message.trim() === '' ? [] : [`Message: ${message.trim()}`]
  return [...(purpose === null ? [] : [purpose]), ...messageLine].join('\n') || null
}
