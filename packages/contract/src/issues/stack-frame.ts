/**
 * Finds the frame of a stack that is in the user's own code, where the error was thrown. Reads stacks of V8 (newest
 * call first) and Python tracebacks (newest call last; of chained ones, the last is the error itself).
 */

const LINES_READ = 400
const LINE_CHARS = 500
/** How many folders a file's name keeps, so that it has the same name wherever it is deployed. */
const FOLDERS_KEPT = 1

interface StackFrame {
  name: string
  path: string
}

/** The user's own frame as text for people: `parseOrder (tools/orders.ts)`. Null: the stack has none. */
export function ownFrame(stack: string): string | null {
  const ownPlace = newestFirst(stack).find(({ path }) => isOwn(path))
  if (ownPlace === undefined) return null
  const file = shortPath(ownPlace.path)
  return ownPlace.name === '' ? file : `${ownPlace.name} (${file})`
}

function newestFirst(stack: string): StackFrame[] {
  const lines = stack
    .split('\n', LINES_READ)
    .map((line) => line.slice(0, LINE_CHARS).trim())
    .filter((line) => line !== '')
  const python = lines.flatMap((line) => pythonFrame(line) ?? [])
  return python.length > 0 ? pythonOrder(lines) : lines.flatMap((line) => v8Frame(line) ?? [])
}

/** Newest call first: the frames of the last traceback, then those of the one before it. */
function pythonOrder(lines: readonly string[]): StackFrame[] {
  const tracebacks: StackFrame[][] = [[]]
  for (const line of lines) {
    const frame = pythonFrame(line)
    if (frame !== null) tracebacks.at(-1)?.push(frame)
    else if (line.startsWith('Traceback (most recent call last)')) tracebacks.push([])
  }
  return tracebacks.toReversed().flatMap((frames) => frames.toReversed())
}

/** `File "/app/agent.py", line 12, in main` */
function pythonFrame(line: string): StackFrame | null {
  if (!line.startsWith('File "')) return null
  const end = line.indexOf('", line ', 6)
  if (end === -1) return null
  const [, name = ''] = line.slice(end).split(', in ', 2)
  return { path: line.slice(6, end), name: name.startsWith('<') ? '' : name }
}

/** `at async name (place:1:2)`, `at place:1:2` */
function v8Frame(line: string): StackFrame | null {
  if (!line.startsWith('at ')) return null
  const frameText = line.slice(3)
  const open = frameText.endsWith(')') ? frameText.lastIndexOf(' (') : -1
  const place = open === -1 ? frameText : frameText.slice(open + 2, -1)
  const path = withoutNumbers(place.startsWith('async ') ? place.slice(6) : place)
  if (path === null) return null
  return { path, name: open === -1 ? '' : functionName(frameText.slice(0, open)) }
}

/** Removes line and column from a place. Null if the text has none. */
function withoutNumbers(place: string): string | null {
  const column = place.lastIndexOf(':')
  const line = place.lastIndexOf(':', column - 1)
  const isPlace = line > 0 && /^\d{1,9}:\d{1,9}$/.test(place.slice(line + 1))
  return isPlace ? place.slice(0, line) : null
}

function functionName(frameText: string): string {
  const [called = ''] = frameText.split(' [as ', 1)
  const words = called.split(' ').filter((word) => word !== 'async' && word !== 'new')
  const name = words.join(' ')
  if (name.endsWith('<anonymous>')) return ''
  // V8 names the receiver, which depends on how the function was called, so `Object.run` becomes `run`.
  return name.startsWith('Object.') || name.startsWith('Module.') ? name.slice(7) : name
}

const OTHERS = ['/node_modules/', '/site-packages/', '/dist-packages/', '/@tacho/', '/lib/python3', '/lib64/python3']

function isOwn(path: string): boolean {
  const plain = path.replaceAll('\\', '/')
  if (/^(?:node:|internal\/|ext:|deno:|bun:|native|<|evalmachine)/.test(plain)) return false
  return !OTHERS.some((folder) => plain.includes(folder))
}

function shortPath(path: string): string {
  const parts = path.replaceAll('\\', '/').split('/')
  const [file = '', ...folders] = parts.toReversed()
  // Removes a bundler's digest, which changes with each build.
  const name = (file.split('?', 1)[0] ?? '').replace(/[.-](?=[0-9a-zA-Z_]*\d)[0-9a-zA-Z_]{8,20}(?=\.\w{1,4}$)/, '')
  const nearFolders = folders.filter((folder) => folder !== '' && !folder.endsWith(':')).slice(0, FOLDERS_KEPT)
  return [...nearFolders.toReversed(), name].join('/')
}
