/**
 * Describes a tool call for people: a command with its output, or an edit as a difference of lines. Recognizes them by
 * the shapes that coding agents use, whatever the tool's name. Pure, and its work is bounded by the size of a payload.
 */
import { contentText, inShort, isObject, textAt, type Json } from '../record/payload-reader.ts'

export interface DiffLine {
  change: 'same' | 'removed' | 'added'
  text: string
}

export interface ToldCommand {
  is: 'command'
  command: string
  /** stdout and stderr together. Null: unknown or empty. */
  output: string | null
}

export interface ToldEdit {
  is: 'edit'
  /** The files of an edit. A patch may change several. */
  files: readonly string[]
  /** Groups of lines. Between two groups, lines are left out. */
  hunks: readonly (readonly DiffLine[])[]
  added: number
  removed: number
}

/** Unchanged lines that are shown around a change. */
const CONTEXT = 3

/** Null: neither a command nor an edit. */
export function toldCall({ input, output, error }: Json): ToldCommand | ToldEdit | null {
  if (typeof input === 'string') return PATCH.test(input) ? editOfPatch(input) : null
  if (!isObject(input)) return null
  const patch = ['command', 'patchText', 'patch', 'input']
    .map((key) => textAt(input, key))
    .find((text) => text !== null && PATCH.test(text))
  if (patch !== undefined && patch !== null) return editOfPatch(patch)
  const file = FILE.map((key) => textAt(input, key)).find((text) => text !== null)
  if (file !== undefined && file !== null) return editOf(file, input, isObject(output) ? output : {})
  const command = input['command']
  const text = Array.isArray(command) ? command.filter((word) => typeof word === 'string').join(' ') : command
  if (typeof text !== 'string' || text === '') return null
  return { is: 'command', command: text, output: outputText(output) ?? outputText(error) }
}

/**
 * A call in one line: the command, the file, the task of a sub-agent, or its input. `pathText` formats the file's path:
 * a person who decides about the call needs the whole path.
 */
export function callInShort(payload: Json, chars: number, pathText = (path: string) => path): string {
  const callFacts = toldCall(payload)
  if (callFacts?.is === 'command') return inShort(`$ ${callFacts.command}`, chars)
  if (callFacts)
    return `${inShort(callFacts.files.map(pathText).join(', '), chars)} +${callFacts.added} −${callFacts.removed}`
  const { input } = payload
  if (!isObject(input)) return input === undefined ? '' : inShort(input, chars)
  const subagent = textAt(input, 'subagent_type')
  const file = textAt(input, 'file_path')
  const fileText = (file && pathText(file)) ?? (subagent && [subagent, textAt(input, 'description') ?? ''].join(': '))
  return inShort(fileText ?? input, chars)
}

const PATH_CHARS = 48

/** The end of a long absolute path, because people look for the file name, and a row cuts the end. */
export function pathEnd(path: string): string {
  if (path.length <= PATH_CHARS || !/^(?:[/~\\]|[A-Za-z]:)/.test(path)) return path
  const parts = path.split(/(?=[/\\])/)
  let end = parts.pop() ?? ''
  for (
    let pathPart = parts.pop();
    pathPart !== undefined && pathPart.length + end.length < PATH_CHARS;
    pathPart = parts.pop()
  ) {
    end = pathPart + end
  }
  return `…${end}`
}

/** The result of a call, in one line. Empty if it adds nothing to the call. */
export function outputInShort(payload: Json, chars: number): string {
  const { input, output } = payload
  const callFacts = toldCall(payload)
  if (callFacts) return callFacts.is === 'command' ? inShort(callFacts.output ?? '', chars) : ''
  if (output === undefined) return ''
  const isText = isObject(input) && (textAt(input, 'file_path') ?? textAt(input, 'subagent_type')) !== null
  return inShort((isText ? outputText(output) : null) ?? output, chars)
}

/** Why a policy held a call back. Empty if only the policy's name is known, which is in `policyIds`. */
export function decisionReason(payload: Json): string {
  const reason = textAt(payload, 'reason') ?? ''
  return Array.isArray(payload['policyIds']) ? reason.replace(/^policy "[^"]*"(: |$)/, '') : reason
}

/** Colours and cursor movements of terminals. */
// oxlint-disable-next-line no-control-regex
const TERMINAL = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g

/** The text of a tool's output, in the shapes of shells and models. Null: there is none. */
function outputText(output: unknown): string | null {
  const text = rawText(output).replace(TERMINAL, '').trimEnd()
  return text === '' ? null : text
}

function rawText(output: unknown): string {
  if (typeof output === 'string') return output
  if (Array.isArray(output)) return contentText(output)
  if (!isObject(output)) return ''
  const streams = ['stdout', 'stderr']
    .map((key) => textAt(output, key)?.replace(/\n$/, ''))
    .filter((text) => text !== undefined)
  if (streams.length > 0) return streams.join('\n')
  const file = output['file']
  if (isObject(file) && typeof file['content'] === 'string') return file['content']
  for (const key of ['textResultForLlm', 'output', 'llmContent', 'content', 'text', 'message']) {
    const text = typeof output[key] === 'string' ? output[key] : contentText(output[key])
    if (text !== '') return text
  }
  return ''
}

const FILE = ['file_path', 'filePath', 'path', 'notebook_path']

function editOf(file: string, input: Json, output: Json): ToldEdit | null {
  const known = hunksOf(output['structuredPatch'])
  if (known) return edited([file], known)
  const changes = Array.isArray(input['edits']) ? input['edits'].filter(isObject) : [input]
  const hunks = changes.flatMap((change) => {
    const [before, after] = [OLD, NEW].map((names) =>
      names.map((name) => change[name]).find((text) => typeof text === 'string'),
    )
    return before === undefined && after === undefined ? [] : [changed(String(before ?? ''), String(after ?? ''))]
  })
  return hunks.length === 0 ? null : edited([file], hunks)
}

const OLD = ['old_string', 'oldString', 'old_str', 'oldText']
const NEW = ['new_string', 'newString', 'new_str', 'newText', 'content', 'file_text', 'new_source']

function edited(files: readonly string[], hunks: readonly (readonly DiffLine[])[]): ToldEdit {
  const count = (change: DiffLine['change']) =>
    hunks.reduce((sum, lines) => sum + lines.filter((line) => line.change === change).length, 0)
  return { is: 'edit', files, hunks, added: count('added'), removed: count('removed') }
}

/** The difference that Claude Code computes itself. It is empty for a new file. */
function hunksOf(patch: unknown): DiffLine[][] | null {
  if (!Array.isArray(patch) || patch.length === 0) return null
  const hunks = patch.map((hunk: unknown) =>
    isObject(hunk) && Array.isArray(hunk['lines']) ? (hunk['lines'] as unknown[]) : null,
  )
  if (hunks.some((lines) => lines === null)) return null
  return hunks.map((lines) => (lines ?? []).filter((line) => typeof line === 'string').flatMap(signedLine))
}

const CHANGES = new Map<string, DiffLine['change']>([
  ['+', 'added'],
  ['-', 'removed'],
  [' ', 'same'],
])

/** Drops the line `\ No newline at end of file`. */
function signedLine(line: string): DiffLine[] {
  const change = line === '' ? 'same' : CHANGES.get(line.charAt(0))
  return change ? [{ change, text: line.slice(1) }] : []
}

/** All lines from the first difference to the last count as changed, so one pass is enough. */
function changed(before: string, after: string): DiffLine[] {
  const [old, next] = [linesOf(before), linesOf(after)]
  let start = 0
  while (start < old.length && start < next.length && old[start] === next[start]) start++
  let end = 0
  while (end < old.length - start && end < next.length - start && old.at(-1 - end) === next.at(-1 - end)) end++
  const as = (change: DiffLine['change'], lines: readonly string[]) => lines.map((text) => ({ change, text }))
  return [
    ...as('same', old.slice(Math.max(0, start - CONTEXT), start)),
    ...as('removed', old.slice(start, old.length - end)),
    ...as('added', next.slice(start, next.length - end)),
    ...as('same', old.slice(old.length - end, old.length - end + CONTEXT)),
  ]
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

const PATCH = /^\s*\*\*\* Begin Patch/
const PATCHED = /^\*\*\* (?:Add|Update|Delete) File: ?(.*)$/

/** The patch format of Codex and others: changed lines have signs, and other lines begin with `***` or `@@`. */
function editOfPatch(patch: string): ToldEdit {
  const files: string[] = []
  const hunks: DiffLine[][] = []
  let hunk: DiffLine[] = []
  for (const line of patch.split('\n')) {
    const [, file] = PATCHED.exec(line) ?? []
    if (file !== undefined) files.push(file.trim())
    if (file !== undefined || /^(?:@@|\*\*\* )/.test(line)) {
      if (hunk.length > 0) hunks.push(hunk)
      hunk = []
    } else if (line !== '' || hunk.length > 0) hunk.push(...signedLine(line))
  }
  if (hunk.length > 0) hunks.push(hunk)
  return edited(files, hunks)
}
