/** The session files of agents: they contain the tool calls for which no hook ran. */
import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { AGENTS, type AgentName } from '../agents.ts'
import { callIdOf, textOf } from '../record.ts'

/** A call of a tool that has a result. */
export interface KeptCall {
  readonly sessionId: string
  readonly callId: string
  readonly toolName: string
  readonly input: unknown
  /** Unix time in milliseconds. */
  readonly at: number
}

type Fields = Readonly<Record<string, unknown>>
interface Answered {
  readonly is: 'result'
  readonly callId: string
  readonly ran: boolean
  /** The answer to the model, if a person declined the call. */
  readonly declined?: string | undefined
}

type Entry =
  | { readonly is: 'call'; readonly callId: string; readonly toolName: string; readonly input: unknown }
  /** `ran` is false if the agent itself refused the call before any hook. */
  | Answered

interface Form {
  /** The folder of all sessions, if no file is known. */
  readonly folder: string
  /** The part of a file's path that is below this folder. */
  readonly below: RegExp
  /** Reads the session's id from a line or the file's name. Absent: the first line of the file has the id. */
  readonly sessionId?: (line: Fields, file: string) => unknown
  readonly entries: (line: Fields) => Entry[]
}

/** Bytes read at once. Each read continues where the last one ended; of a longer part, only the end is read. */
const PART_BYTES_MAX = 32 * 1_048_576
const HEAD_BYTES = 65_536
const FILES_MAX = 1_000

/** Results of calls that did not run begin like this: unknown tool, invalid arguments, or refused by a hook. */
const CLAUDE_REFUSED = /^(<tool_use_error>|PreToolUse:\S+ hook error: )/
/** Results of calls that the agent's user, or its settings, declined. */
const CLAUDE_DECLINED = /^(The user doesn't want to (proceed with|take) |Permission to use .{1,300} has been denied)/
const CODEX_DECLINED = /^[\w ]{1,40} rejected by user/
const CODEX_REFUSED =
  /^(unsupported (custom tool )?call: |failed to parse function arguments: |[\w ]{1,40} blocked by PreToolUse hook: )/
const GEMINI_REFUSED = /"error":"(params must |Path not in workspace: |Tool \\"|Tool execution blocked: )/

const QWEN_REFUSED = new Set<unknown>(['tool_not_registered', 'invalid_tool_params', 'execution_denied'])
/** Errors of calls that pi refused. Also matches our module's refusal, if the hook recorded no answer. */
const PI_REFUSED = /^(Tool \S+ not found|Validation failed for tool )|tacho: the hook gave no decision/

/** Agents whose session files are known. opencode has a database: session-database.ts. */
const FORMS: Partial<Record<AgentName, Form>> = {
  'claude-code': {
    folder: '.claude/projects',
    below: /\/projects\/.*$/,
    sessionId: ({ sessionId }) => sessionId,
    entries: ({ message }) =>
      listOf(objectOf(message)['content']).flatMap((contentPart): Entry[] => {
        if (contentPart['type'] === 'tool_use') {
          return [
            {
              is: 'call',
              callId: String(contentPart['id']),
              toolName: String(contentPart['name']),
              input: contentPart['input'],
            },
          ]
        }
        if (contentPart['type'] !== 'tool_result') return []
        const errorText = (contentPart['is_error'] === true && textOf(contentPart['content'])) || ''
        const declined = CLAUDE_DECLINED.test(errorText) ? errorText : undefined
        return [
          {
            is: 'result',
            callId: String(contentPart['tool_use_id']),
            ran: declined === undefined && !CLAUDE_REFUSED.test(errorText),
            declined,
          },
        ]
      }),
  },
  codex: {
    folder: '.codex/sessions',
    below: /\/sessions\/.*$/,
    sessionId: (_line, file) => /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl$/.exec(file)?.[1],
    entries({ type, payload }) {
      const item = objectOf(payload)
      if (type !== 'response_item') return []
      const callId = textOf(item['call_id']) ?? ''
      const kind = textOf(item['type']) ?? ''
      if (kind.endsWith('_call_output')) {
        const output = textOf(item['output']) ?? textOf(objectOf(item['output'])['content']) ?? ''
        const declined = CODEX_DECLINED.test(output) ? output : undefined
        return [{ is: 'result', callId, ran: declined === undefined && !CODEX_REFUSED.test(output), declined }]
      }
      if (!kind.endsWith('_call') || item['call_id'] === undefined) return []
      const input = parsed(item['arguments'] ?? item['input'] ?? item['action'])
      const toolName = textOf(item['name']) ?? kind
      // These tools have no effect and no hook.
      if (toolName === 'update_plan' || toolName === 'request_user_input') return []
      if (toolName === 'write_stdin' && objectOf(input)['chars'] === '') return []
      return [{ is: 'call', callId, toolName, input }]
    },
  },
  'gemini-cli': {
    folder: '.gemini/tmp',
    below: /\/tmp\/[^/]+\/chats\/.*$/,
    entries: ({ toolCalls }) =>
      listOf(toolCalls).flatMap(({ id, name, args, status, result }): Entry[] => {
        const callId = textOf(id) ?? ''
        const isRefused = GEMINI_REFUSED.test(JSON.stringify(result ?? ''))
        return [
          { is: 'call', callId, toolName: textOf(name) ?? '', input: args },
          ...(status === 'cancelled' || result === undefined
            ? []
            : [{ is: 'result' as const, callId, ran: !isRefused }]),
        ]
      }),
  },
  'qwen-code': {
    folder: '.qwen/projects',
    below: /\/projects\/.*$/,
    sessionId: ({ sessionId }) => sessionId,
    entries: ({ message, toolCallResult }) =>
      listOf(objectOf(message)['parts']).flatMap((messagePart): Entry[] => {
        const { functionCall, functionResponse } = messagePart
        const { id, name, args } = objectOf(functionCall ?? functionResponse)
        const callId = textOf(id) ?? ''
        if (functionCall) return [{ is: 'call', callId, toolName: textOf(name) ?? '', input: args }]
        return functionResponse
          ? [{ is: 'result', callId, ran: !QWEN_REFUSED.has(objectOf(toolCallResult)['errorType']) }]
          : []
      }),
  },
  pi: {
    folder: '.pi/agent/sessions',
    below: /\/sessions\/.*$/,
    sessionId: (_line, file) => /_([0-9a-f-]{36})\.jsonl$/.exec(file)?.[1],
    entries({ message }) {
      const { role, content, toolCallId, isError } = objectOf(message)
      if (role === 'toolResult') {
        const isRefused = isError === true && PI_REFUSED.test(textOf(listOf(content)[0]?.['text']) ?? '')
        return [{ is: 'result', callId: textOf(toolCallId) ?? '', ran: !isRefused }]
      }
      return listOf(content)
        .filter(({ type }) => type === 'toolCall')
        .map(({ id, name, arguments: input }) => {
          return { is: 'call', callId: textOf(id) ?? '', toolName: textOf(name) ?? '', input }
        })
    },
  },
  copilot: {
    folder: '.copilot/session-state',
    below: /\/session-state\/.*$/,
    entries({ type, data }) {
      const { toolCallId, toolName, arguments: input, success, error } = objectOf(data)
      const callId = textOf(toolCallId) ?? ''
      if (type === 'tool.execution_start') return [{ is: 'call', callId, toolName: textOf(toolName) ?? '', input }]
      if (type !== 'tool.execution_complete') return []
      return [{ is: 'result', callId, ran: success === true || objectOf(error)['code'] !== 'denied' }]
    },
  },
}

/** The session files that changed since then, newest first. `known` is one of them, if the agent named it. */
export function sessionFiles(agent: AgentName, known: string | undefined, changedSince: number): string[] {
  const form = FORMS[agent]
  if (!form) return []
  const { folder, below } = form
  const root = known !== undefined && below.test(known) ? known.replace(below, '') : null
  const top = root === null ? path.join(homedir(), folder) : path.join(root, path.basename(folder))
  let names: string[]
  try {
    names = readdirSync(top, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
  const files = names
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => path.join(top, name))
    .map((file) => ({ file, at: statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
  return files
    .filter(({ at }) => at >= changedSince)
    .sort((a, b) => b.at - a.at)
    .slice(0, FILES_MAX)
    .map(({ file }) => file)
}

/**
 * The calls with results from this place on, and the place to continue from: before the first call without a result.
 */
export function readSessionFile(agent: AgentName, file: string, from: number): { calls: KeptCall[]; next: number } {
  const form = FORMS[agent]
  if (!form) return { calls: [], next: from }
  const { sessionId = () => head, entries } = form
  const { bytes, start } = readFrom(file, from)
  const head = textAt(file, 'sessionId')
  const open = new Map<string, Omit<KeptCall, 'at'> & { at: number; place: number }>()
  const calls: KeptCall[] = []
  let next = start
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, next - start)) {
    const place = next
    const line = objectOf(parsed(bytes.toString('utf8', place - start, end)))
    next = start + end + 1
    const session = sessionId(line, file)
    if (typeof session !== 'string') continue
    for (const entry of entries(line)) {
      if (entry.is === 'call') {
        const { callId, toolName, input } = entry
        const at = Date.parse(String(line['timestamp'])) || 0
        const id = AGENTS[agent].hasNoCallIds ? callIdOf(toolName, input) : callId
        open.set(callId, { sessionId: session, callId: id, toolName, input, at, place })
        continue
      }
      const call = open.get(entry.callId)
      if (call && entry.ran) calls.push(call)
      open.delete(entry.callId)
    }
  }
  return { calls, next: Math.min(next, ...[...open.values()].map(({ place }) => place)) }
}

/** The agent's answers to its model for calls that a person declined, by call id. */
export function declinedCalls(agent: AgentName, file: string): ReadonlyMap<string, string> {
  const declined = new Map<string, string>()
  for (const line of tailOf(file).split('\n')) {
    for (const entry of FORMS[agent]?.entries(objectOf(parsed(line))) ?? []) {
      if (entry.is === 'result' && entry.declined !== undefined) declined.set(entry.callId, entry.declined)
    }
  }
  return declined
}

const TAIL_BYTES = 1_048_576

function tailOf(file: string): string {
  try {
    return readPart(file, Math.max(0, statSync(file).size - TAIL_BYTES), TAIL_BYTES).toString('utf8')
  } catch {
    return ''
  }
}

export function cwdOf(file: string): string | null {
  return textAt(file, 'cwd')
}

/** The beginning of the file; empty if it cannot be read. */
export function headOf(file: string): string {
  return readPart(file, 0, HEAD_BYTES).toString()
}

/** The first text with this name at the beginning of the file, or null. */
function textAt(file: string, name: 'cwd' | 'sessionId'): string | null {
  const [, text] = TEXTS[name].exec(headOf(file)) ?? []
  return text === undefined ? null : (textOf(parsed(text)) ?? null)
}

const TEXTS = { cwd: /"cwd":("(?:[^"\\]|\\.)*")/, sessionId: /"sessionId":("[\w-]+")/ }

function readFrom(file: string, from: number): { bytes: Buffer; start: number } {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  // A file that became shorter is another file.
  const start = Math.max(from > size ? 0 : from, size - PART_BYTES_MAX)
  return { bytes: readPart(file, start, size - start), start }
}

/** Empty if the file cannot be read. */
function readPart(file: string, start: number, length: number): Buffer {
  let handle: number | undefined
  try {
    handle = openSync(file, 'r')
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(handle, bytes, 0, length, start))
  } catch {
    return Buffer.alloc(0)
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}

function parsed(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

function objectOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {}
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(objectOf) : []
}
