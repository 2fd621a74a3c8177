/**
 * Whether a call writes outside the project, according to its input: the file of an edit, the files of a patch, and
 * files that a shell command redirects to or passes to programs that write.
 */
import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'
import { AGENTS, type AgentName } from './agents.ts'
import { partsOf, UNKNOWN } from './shell-words.ts'

export const WRITES_OUTSIDE = 'writes_outside_project'

export interface Place {
  /** Folder in which the session works now. */
  readonly cwd: string
  /** The folder in which it started. */
  readonly start: string
}

/** Temporary folders: every program may write there. */
const TEMPORARY = [tmpdir(), '/tmp', '/var/tmp', ...(process.platform === 'darwin' ? ['/var/folders'] : [])]
const DEVICE = /^\/dev\/(null|zero|tty|stdin|stdout|stderr|fd\/\d+)$/
/** A call with more paths counts as writing outside, without a check. */
const PATHS_MAX = 1_000
const FIELDS = ['file_path', 'path', 'filePath', 'notebook_path']
const PATCH_FIELDS = ['command', 'patchText', 'patch', 'input']
const PATCHED = /^\*\*\* (?:Add File|Update File|Delete File|Move to): ?(.+)$/gm

export function writesOutside(agent: AgentName, toolName: string, input: unknown, place: Place): boolean {
  const { kinds } = AGENTS[agent]
  if (!kinds.edit.includes(toolName) && !kinds.shell.includes(toolName)) return false
  const paths = kinds.edit.includes(toolName) ? editedPaths(input) : commandPaths(input, place.cwd)
  const allowed = [projectOf(place.start), ...TEMPORARY].map(real)
  return (
    paths.length > PATHS_MAX || paths.some((writtenPath) => !isInside(path.resolve(place.cwd, writtenPath), allowed))
  )
}

/** The repository around the folder, or the folder itself. A repository of the user's whole home is no project. */
export function projectOf(start: string): string {
  for (let folder = start; folder !== homedir() && folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, '.git'))) return folder
  }
  return start
}

function isInside(target: string, folders: readonly string[]): boolean {
  if (DEVICE.test(target)) return true
  const realTarget = real(target)
  return folders.some(
    (folder) => realTarget === folder || realTarget.startsWith(folder.endsWith('/') ? folder : `${folder}/`),
  )
}

/** Resolves links in a path, even if its last part does not exist yet. */
function real(pathText: string): string {
  try {
    let existing = pathText
    while (existing !== path.dirname(existing) && !lstatSync(existing, { throwIfNoEntry: false })) {
      existing = path.dirname(existing)
    }
    return path.join(realpathSync(existing), path.relative(existing, pathText))
  } catch {
    // A broken link or an unreadable folder: treat it as outside.
    return '/'
  }
}

function editedPaths(input: unknown): string[] {
  const fields = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : { input }
  const texts = (names: readonly string[]) =>
    names.map((name) => fields[name]).filter((value) => typeof value === 'string')
  return [...texts(FIELDS).map(withHome), ...texts(PATCH_FIELDS).flatMap(patchedPaths)]
}

function patchedPaths(patch: string): string[] {
  return [...patch.matchAll(PATCHED)].map(([, file = '']) => file.trim())
}

const withHome = (pathText: string): string => pathText.replace(/^~(?=\/|$)/, homedir())

function commandPaths(input: unknown, cwd: string): string[] {
  const command = (input as { command?: unknown } | null)?.command
  const variables = new Map([
    ['HOME', homedir()],
    ['PWD', cwd],
    ['TMPDIR', tmpdir()],
  ])
  if (typeof command !== 'string') return []
  // Codex applies a patch in a command itself, without a separate hook.
  return [...pathsWritten(command, { cwd, variables, depth: 0 }), ...patchedPaths(command)]
}

/** Programs that run another program. */
const WRAPPERS = new Set(
  'sudo doas env nohup nice time command builtin exec setsid stdbuf timeout flock ionice chrt xargs then do else if while until ! {'.split(
    ' ',
  ),
)
const WRAPPER_VALUES = /^(-[ugnsIPLUC]|--(user|group|signal|adjustment|unset|chdir))$/
const SHELLS = new Set(['sh', 'bash', 'zsh', 'dash', 'ksh', 'fish'])
/** Programs that write to all their operands; below, those that write to the last one. */
const ALL = new Set('rm rmdir unlink shred mkdir touch tee truncate chmod chown chgrp mv mkfifo mknod'.split(' '))
const LAST = new Set('cp ln install rsync scp'.split(' '))
/** Options whose value is a path that the command writes. */
const VALUES = new Map<string, readonly string[]>([
  ['cp', ['-t', '--target-directory']],
  ['mv', ['-t', '--target-directory']],
  ['ln', ['-t', '--target-directory']],
  ['install', ['-t', '--target-directory']],
  ['tar', ['-C', '--directory']],
  ['unzip', ['-d']],
  ['curl', ['-o', '--output', '--output-dir']],
  ['wget', ['-O', '--output-document', '-P', '--directory-prefix']],
  ['sort', ['-o', '--output']],
  ['git', ['--output']],
])
const DEPTH_MAX = 4

interface Shell {
  cwd: string
  variables: Map<string, string>
  depth: number
}

function pathsWritten(text: string, shell: Shell): string[] {
  // Commands nested this deeply hide something: treat them as writing outside.
  if (shell.depth > DEPTH_MAX) return ['/']
  const outer: string[] = []
  const paths: string[] = []
  let { cwd } = shell
  const add = (pathText: string): void => {
    // If the part before the unknown begins with a folder, it shows where the path leads.
    const known = pathText.includes(UNKNOWN) ? pathText.slice(0, pathText.indexOf(UNKNOWN)) : pathText
    if (known !== '') paths.push(path.resolve(cwd, known))
  }
  const within = (inner: string): void =>
    void paths.push(...pathsWritten(inner, { cwd, variables: shell.variables, depth: shell.depth + 1 }))
  for (const shellPart of partsOf(text, shell.variables)) {
    if (shellPart.is === 'open') outer.push(cwd)
    else if (shellPart.is === 'close') cwd = outer.pop() ?? cwd
    else if (shellPart.is === 'inner') within(shellPart.text)
    else {
      for (const file of shellPart.written) if (!/^[\d-]+$/.test(file)) add(file)
      const [program = '', ...words] = withoutWrappers(shellPart.words)
      const name = path.basename(program)
      if (name === 'cd' || name === 'pushd') {
        const [to = shell.variables.get('HOME') ?? cwd] = words.filter((word) => !word.startsWith('-'))
        if (!to.includes(UNKNOWN)) cwd = path.resolve(cwd, to)
        shell.variables.set('PWD', cwd)
      } else if (name === 'eval') within(words.join(' '))
      else if (SHELLS.has(name)) {
        const flag = words.findIndex((word) => /^-\w*c$/.test(word))
        if (flag >= 0) within(words[flag + 1] ?? '')
      } else {
        for (const file of writtenBy(name, words)) add(file)
        const started = name === 'find' ? words.findIndex((word) => /^-(exec|ok)(dir)?$/.test(word)) : -1
        if (started >= 0) within(words.slice(started + 1).join(' '))
      }
    }
  }
  return paths
}

/** The program and its words, without assignments and without programs that only start it. */
function withoutWrappers(words: readonly string[]): readonly string[] {
  let at = 0
  for (let isWrapped = false; at < words.length; at++) {
    const word = words[at] as string
    if (WRAPPERS.has(path.basename(word))) isWrapped = true
    else if (isWrapped && WRAPPER_VALUES.test(word)) at++
    else if (!(isWrapped && /^(-|\w+=|[\d.]+[smhd]?$)/.test(word))) break
  }
  return words.slice(at)
}

function writtenBy(name: string, words: readonly string[]): string[] {
  const options = VALUES.get(name) ?? []
  const values = words.flatMap((word, at) => {
    const option = options.find((each) => word === each || word.startsWith(each.startsWith('--') ? `${each}=` : each))
    if (option === undefined) return []
    return word === option ? [words[at + 1] ?? ''] : [word.slice(option.length).replace(/^=/, '')]
  })
  const operands = words.filter((word) => !word.startsWith('-') || word === '-')
  if (ALL.has(name)) return [...values, ...operands]
  if (LAST.has(name)) return [...values, ...(operands.length > 1 ? operands.slice(-1) : [])]
  if (name === 'dd') return words.filter((word) => word.startsWith('of=')).map((word) => word.slice(3))
  if (name === 'find' && words.some((word) => /^-(delete|exec|execdir|fprint|fls)/.test(word))) {
    return words.slice(
      0,
      words.findIndex((word) => /^[-(!]/.test(word)),
    )
  }
  if ((name === 'sed' || name === 'perl') && words.some((word) => /^(-[a-zA-Z]*i|--in-place)/.test(word))) {
    const isScript = words.findIndex((word) => /^-\w*[ef]$|^--expression/.test(word))
    return isScript < 0 ? operands.slice(1) : operands.filter((word) => word !== words[isScript + 1])
  }
  return values
}
