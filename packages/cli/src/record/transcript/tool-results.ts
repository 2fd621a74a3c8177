/** Finds the result of each tool call. Pure. */
import type { Message, ToolCall } from './transcript.ts'

export interface JoinedCalls {
  /** The call that each tool message answers. A message without an entry answers no call. */
  answered: Map<Message, ToolCall>
  /** Calls without a result. */
  open: Set<ToolCall>
}

/** Joins by id. Some models reuse an id: each result then answers the oldest open call. */
export function joinCalls(messages: readonly Message[]): JoinedCalls {
  const answered = new Map<Message, ToolCall>()
  const open = new Set<ToolCall>()
  const byId = new Map<string, ToolCall[]>()
  for (const message of messages) {
    for (const call of message.toolCalls) {
      open.add(call)
      const id = call.id ?? functionId(call.name)
      const same = byId.get(id)
      if (same) same.push(call)
      else byId.set(id, [call])
    }
    const { toolCallId, source } = message
    const id = toolCallId ?? (source['role'] === 'function' ? functionId(source['name']) : null)
    const call = id === null ? undefined : byId.get(id)?.shift()
    if (message.role !== 'tool' || call === undefined) continue
    answered.set(message, call)
    open.delete(call)
  }
  return { answered, open }
}

/** Calls of the time before tools have no id. */
const functionId = (name: unknown): string => `function\0${String(name)}`
