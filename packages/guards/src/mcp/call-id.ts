/** The model's id of a call, if the client says it in `_meta`, as Claude Code does; else the id of the request. */
import { isObject, type Json } from './message.ts'

/** The last part of its name: `claudecode/toolUseId`. */
const NAMES: ReadonlySet<string> = new Set(['toolUseId', 'toolCallId', 'tool_use_id', 'tool_call_id'])
const CHARS_MAX = 255

export function callIdOf(id: unknown, params: Json): string {
  const meta = isObject(params['_meta']) ? params['_meta'] : {}
  const named = Object.entries(meta).find(([name]) => NAMES.has(name.slice(name.lastIndexOf('/') + 1)))?.[1]
  return typeof named === 'string' && named !== '' && named.length <= CHARS_MAX ? named : String(id).slice(0, CHARS_MAX)
}
