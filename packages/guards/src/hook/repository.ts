/**
 * Finds files of a repository that start programs or change settings: hooks, MCP servers, helpers, variables, modules,
 * and commands inside texts. These programs run without a tool call, so no policy decides. The check runs when a
 * session starts.
 */
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import type { Run, Tacho } from '@tacho/sdk'
import { digest } from '../state.ts'
import type { AgentName } from './agents.ts'
import { isWholeModule } from './modules.ts'
import { deleteOldFiles } from './old-files.ts'
import { withoutHooks } from './settings.ts'
import { vanishedIn } from './session/vanished.ts'
import { projectOf } from './written-paths.ts'

export interface Looked {
  readonly agent: AgentName
  /** The folder of the session. */
  readonly cwd: string
  /** Settings that have no effect here, for example `hooks` if only managed hooks run. */
  readonly ignored: ReadonlySet<string>
  /** Whether a command is exactly the one that Tacho installs. */
  readonly isOurs: (command: string, event: string) => boolean
}

interface Form {
  /** JSON files, and the names of settings that start something. A name includes everything below it. */
  readonly settings?: readonly (readonly [file: string, ...starting: string[]])[]
  /** Other files, and a pattern of the lines that start a program. */
  readonly texts?: readonly (readonly [file: string, starting: RegExp])[]
  /** Folders of texts that may contain a command. */
  readonly instructions?: readonly (readonly [folder: string, starting: RegExp])[]
  /** Folders whose files the agent loads. */
  readonly modules?: readonly string[]
}

/**
 * Matches a command that a Markdown file of Claude Code runs when it is loaded, or hooks and servers in its front
 * matter.
 */
const INLINE = /!`|^```!|^(?:hooks|mcpServers):/m
const GEMINI = ['hooks', 'mcpServers', 'tools.discoveryCommand', 'tools.callCommand']

const FORMS: Readonly<Record<AgentName, Form>> = {
  'claude-code': {
    settings: [
      ...['.claude/settings.json', '.claude/settings.local.json'].map(
        (file) =>
          [
            file,
            'hooks',
            'env',
            'apiKeyHelper',
            'awsAuthRefresh',
            'awsCredentialExport',
            'gcpAuthRefresh',
            'otelHeadersHelper',
            'statusLine',
            'subagentStatusLine',
            'fileSuggestion',
            'enabledPlugins',
          ] as const,
      ),
      ['.mcp.json', 'mcpServers'],
    ],
    instructions: [
      ['.claude/skills', INLINE],
      ['.claude/commands', INLINE],
      ['.claude/agents', INLINE],
    ],
  },
  codex: {
    settings: [['.codex/hooks.json', 'hooks']],
    texts: [['.codex/config.toml', /^\s*(\[{0,2}(?:mcp_servers|hooks|shell_environment_policy)\b[^=\n]*|notify\b)/gm]],
  },
  'gemini-cli': {
    settings: [['.gemini/settings.json', ...GEMINI]],
    instructions: [['.gemini/commands', /!\{/]],
    modules: ['.gemini/extensions'],
  },
  'qwen-code': {
    settings: [['.qwen/settings.json', ...GEMINI]],
    instructions: [['.qwen/commands', /!\{/]],
    modules: ['.qwen/extensions'],
  },
  copilot: {
    settings: [
      ['.github/hooks/*.json', 'hooks'],
      ['.github/copilot/settings.json', 'hooks', 'enabledPlugins'],
      ['.mcp.json', 'mcpServers'],
      ['.github/mcp.json', 'mcpServers'],
      ['.vscode/mcp.json', 'servers'],
    ],
  },
  cursor: {
    settings: [
      ['.cursor/hooks.json', 'hooks'],
      ['.cursor/mcp.json', 'mcpServers'],
    ],
  },
  opencode: {
    settings: ['opencode.json', 'opencode.jsonc', '.opencode/opencode.json', '.opencode/opencode.jsonc'].map(
      (file) => [file, 'mcp', 'plugin', 'formatter', 'lsp'] as const,
    ),
    instructions: [
      ['.opencode/command', /!`/],
      ['.opencode/commands', /!`/],
    ],
    modules: ['.opencode/plugin', '.opencode/plugins', '.opencode/tool', '.opencode/tools'],
  },
  pi: { settings: [['.pi/settings.json', 'packages', 'extensions']], modules: ['.pi/extensions'] },
}

/** Agents run git at the start, and git runs these settings. */
const GIT = [['.git/config', /^\s*(fsmonitor)\s*=\s*(?!true\b|false\b)\S|^\s*(\[filter\b[^\]]*\])/gim]] as const

const FILE_BYTES_MAX = 1_048_576
const FILES_MAX = 200
const FOLDERS_MAX = 20
/** Maximum number of names in one report. */
const NAMED_MAX = 50
/** How long a reported list is remembered. */
const KEPT_MS = 365 * 24 * 3_600_000
const KEPT_MAX = 1_000

/** Describes everything that the repository starts. Sorted, without duplicates. */
export function startedByRepository(looked: Looked): string[] {
  const { agent, cwd, isOurs } = looked
  const { settings = [], texts = [], instructions = [], modules = [] } = FORMS[agent]
  const repositoryFiles = foldersOf(cwd).flatMap((folder) => {
    const read = (file: string): string => textOf(path.join(folder, file))
    const below = (each: string): string[] => filesBelow(folder, each)
    return [
      ...settings.flatMap(([place, ...names]) =>
        below(place).flatMap((file) => startedIn(looked, read(file), names).map((what) => `${what} in ${file}`)),
      ),
      ...[...texts, ...GIT].flatMap(([file, starting]) =>
        [...read(file).matchAll(starting)].map((match) => `${match.slice(1).join('').trim()} in ${file}`),
      ),
      ...instructions.flatMap(([place, starting]) =>
        below(place)
          .filter((file) => starting.test(read(file)))
          .map((file) => `a command in ${file}`),
      ),
      ...modules.flatMap((place) =>
        below(place)
          .filter((file) => !isWholeModule(agent, read(file), isOurs))
          .map((file) => `the module ${file}`),
      ),
    ]
  })
  return [...new Set([...repositoryFiles, ...vanishedIn(projectOf(cwd), isWatched(looked))])].sort()
}

/** Whether the file of a project could start something in this session. */
function isWatched({ agent, cwd, ignored }: Looked): (file: string) => boolean {
  const { settings = [], texts = [], instructions = [], modules = [] } = FORMS[agent]
  const working = settings.filter(([, ...names]) => names.some((name) => !ignored.has(name)))
  const places = [...working, ...texts, ...instructions].map(([place]) => place).concat(modules)
  const project = projectOf(cwd)
  const below = foldersOf(cwd).map((folder) => path.relative(project, folder).replaceAll(path.sep, '/'))
  const starts = below.flatMap((folder) => places.map((place) => path.posix.join(folder, place.replace(/\*.*/, ''))))
  return (file) => starts.some((start) => file === start || file.startsWith(start.endsWith('/') ? start : `${start}/`))
}

/** Records what a repository starts, again only after a change. Returns a sentence for the user, or none. */
export function reportStarted(tacho: Tacho, run: Run, directory: string, looked: Looked): string[] {
  const { agent, cwd } = looked
  const started = startedByRepository(looked)
  const folder = path.join(directory, 'started')
  const file = path.join(folder, digest(`${agent}\n${projectOf(cwd)}\n${cwd}`).slice(0, 32))
  const known = digest(started.join('\n'))
  if (started.length === 0) {
    rmSync(file, { force: true })
    return []
  }
  if (textOf(file) === known) return []
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(file, known, { mode: 0o600 })
  deleteOldFiles(folder, { now: Date.now(), keptMs: KEPT_MS, filesMax: KEPT_MAX })
  const named = started.slice(0, NAMED_MAX)
  const more = started.length > NAMED_MAX ? `, and ${started.length - NAMED_MAX} more` : ''
  const message = `This repository starts or sets what no policy sees: ${named.join(', ')}${more}`
  const code = 'repository_starts'
  const eventId = run.record({ type: 'ERROR', label: 'repository starts', payload: { code, message, started: named } })
  run.within(() => tacho.reportIssue({ detectionType: 'REPOSITORY_STARTS', payload: { reasonCode: code }, eventId }))
  return [`Tacho: ${message}.`]
}

/** The names of existing settings: `apiKeyHelper`, or each member of an object, such as `hooks.PreToolUse` and `env.PATH`. */
function startedIn({ agent, ignored, isOurs }: Looked, text: string, names: readonly string[]): string[] {
  const parsedSettings = parsed(text)
  const settings = parsedSettings && withoutHooks(parsedSettings, agent, isOurs)
  return names
    .filter((name) => !ignored.has(name))
    .flatMap((name) => {
      // The file does not parse, for example because it has comments.
      if (!settings) return text.includes(`"${name.split('.').at(-1)}"`) ? [name] : []
      const value = name.split('.').reduce<unknown>((outer, key) => objectOf(outer)?.[key], settings)
      if (value === undefined || value === null || value === false) return []
      const inner = objectOf(value)
      if (!inner || typeof inner['command'] === 'string') return [name]
      return Object.keys(inner).map((key) => `${name}.${key}`)
    })
    .filter((name) => !ignored.has(name))
}

/** All folders from that of the session up to that of its project. */
function foldersOf(cwd: string): string[] {
  const project = projectOf(cwd)
  const folders = [cwd]
  for (let folder = cwd; folder !== project && folders.length < FOLDERS_MAX; folder = path.dirname(folder)) {
    folders.push(path.dirname(folder))
  }
  return folders
}

/** The file, all files in this folder, or files with this ending: `hooks/*.json`. */
function filesBelow(folder: string, place: string): string[] {
  const [top, ending = ''] = place.split('*')
  const within = path.join(folder, top as string)
  try {
    if (!statSync(within).isDirectory()) return [place]
    const names = readdirSync(within, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(ending))
    return names
      .sort()
      .map((name) => path.join(top as string, name))
      .filter((file) => statSync(path.join(folder, file), { throwIfNoEntry: false })?.isFile())
      .slice(0, FILES_MAX)
  } catch {
    return []
  }
}

/** The beginning of the file; empty if it cannot be read. */
function textOf(file: string): string {
  let handle: number | undefined
  try {
    handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const bytes = Buffer.alloc(Math.min(fstatSync(handle).size, FILE_BYTES_MAX))
    return bytes.toString('utf8', 0, readSync(handle, bytes))
  } catch {
    return ''
  } finally {
    if (handle !== undefined) closeSync(handle)
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    return undefined
  }
}

function objectOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined
}
