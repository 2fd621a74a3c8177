/** The real programs, and how a session of each is started and set up. A new version is one line. */
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { AgentName } from '../../src/hook/agents.ts'
import { largePackages } from '../../../sdk-integrations/test/large-packages.ts'
import type { ToolUse } from './model-server.ts'

const VERSIONS = {
  'claude-code': '2.1.197',
  codex: '0.169.0',
  'gemini-cli': '0.61.0',
  copilot: '1.0.102',
  'qwen-code': '0.24.4',
  opencode: '1.18.33',
  pi: '0.73.1',
}

const packages = largePackages(
  '640 MB of packages',
  `@anthropic-ai/claude-code@${VERSIONS['claude-code']}`,
  `@openai/codex@${VERSIONS.codex}`,
)
const gemini = largePackages('100 MB of packages', `@google/gemini-cli@${VERSIONS['gemini-cli']}`)
const copilot = largePackages('190 MB of packages', `@github/copilot@${VERSIONS.copilot}`)
const qwen = largePackages('150 MB of packages', `@qwen-code/qwen-code@${VERSIONS['qwen-code']}`)
const opencode = largePackages('350 MB of packages', `opencode-ai@${VERSIONS.opencode}`)
const pi = largePackages('200 MB of packages', `@mariozechner/pi-coding-agent@${VERSIONS.pi}`)
export const skip = [packages, gemini, copilot, qwen, opencode, pi].map((each) => each.skip).find(Boolean) ?? false

/** Where one session takes place. */
export interface Place {
  /** The home of the user: settings, and the state of Tacho. */
  readonly home: string
  /** The repository that somebody else wrote. */
  readonly repository: string
  readonly model: string
}

export interface Program {
  readonly agent: AgentName
  readonly title: string
  /** The settings of the user and of the repository that have hooks. */
  readonly settings: string
  /** The settings in the repository, if their path differs. */
  readonly projectSettings?: string
  /** The tool call that runs a shell command. */
  readonly shell: (command: string) => ToolUse
  /** Writes what the program needs to start without a person, and returns its command line and environment. */
  readonly start: (place: Place, flags: readonly string[]) => { line: string[]; env: Record<string, string> }
  /** Flags with which the program runs hooks that no person has trusted. */
  readonly trust: readonly string[]
}

function executable(pattern: string, { folder } = packages): string {
  const [file] = globSync(path.join(folder, 'node_modules', pattern))
  if (file === undefined) throw new Error(`${pattern} is not in ${folder}`)
  return file
}

function write(file: string, text: string): void {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

export const PROGRAMS: readonly Program[] = [
  {
    agent: 'claude-code',
    title: `Claude Code ${VERSIONS['claude-code']}`,
    settings: '.claude/settings.json',
    shell: (command) => ({ name: 'Bash', input: { command, description: 'Runs it.' } }),
    trust: [],
    start: ({ model }, flags) => ({
      line: [
        executable('@anthropic-ai/claude-code-*/claude'),
        '-p',
        'Go on.',
        '--allowedTools',
        'Bash',
        '--output-format',
        'stream-json',
        '--verbose',
        '--include-hook-events',
        ...flags,
      ],
      env: {
        ANTHROPIC_BASE_URL: model,
        ANTHROPIC_API_KEY: 'sk-scripted',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    }),
  },
  {
    agent: 'codex',
    title: `Codex ${VERSIONS.codex}`,
    settings: '.codex/hooks.json',
    shell: (cmd) => ({ name: 'exec_command', input: { cmd } }),
    trust: ['--dangerously-bypass-hook-trust'],
    start: ({ home, repository, model }, flags) => {
      const config = [
        'model = "gpt-5"',
        'model_provider = "scripted"',
        'approval_policy = "never"',
        'sandbox_mode = "danger-full-access"',
        '[model_providers.scripted]',
        'name = "scripted"',
        `base_url = "${model}/v1"`,
        'wire_api = "responses"',
        `[projects.${JSON.stringify(repository)}]`,
        'trust_level = "trusted"',
      ]
      write(path.join(home, '.codex/config.toml'), `${config.join('\n')}\n`)
      return {
        line: [executable('@openai/codex-*/vendor/*/bin/codex'), ...flags, 'exec', '--skip-git-repo-check', 'Go on.'],
        env: {},
      }
    },
  },
  {
    agent: 'gemini-cli',
    title: `Gemini CLI ${VERSIONS['gemini-cli']}`,
    settings: '.gemini/settings.json',
    shell: (command) => ({ name: 'run_shell_command', input: { command, description: 'Runs it.' } }),
    trust: [],
    start: ({ home, repository, model }, flags) => {
      const file = path.join(home, '.gemini/settings.json')
      const given = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {}
      write(file, JSON.stringify({ ...given, security: { auth: { selectedType: 'gemini-api-key' } } }))
      write(path.join(home, '.gemini/trustedFolders.json'), JSON.stringify({ [repository]: 'TRUST_FOLDER' }))
      const bundle = executable('@google/gemini-cli/bundle/gemini.js', gemini)
      const asked = ['-m', 'gemini-2.5-pro', '--yolo', '-p', 'Go on.', '--output-format', 'stream-json']
      return {
        line: [process.execPath, bundle, ...asked, ...flags],
        env: { GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: 'scripted' },
      }
    },
  },
  {
    agent: 'copilot',
    title: `Copilot CLI ${VERSIONS.copilot}`,
    settings: '.copilot/hooks/tacho.json',
    projectSettings: '.github/hooks/tacho.json',
    shell: (command) => ({ name: 'bash', input: { command, description: 'Runs it.' } }),
    trust: ['--trust-folder'],
    start: ({ model }, flags) => ({
      line: [
        executable('@github/copilot-linux-*/copilot', copilot),
        '-p',
        'Go on.',
        '--allow-all-tools',
        '--model',
        'gpt-5',
        '--output-format',
        'json',
        ...flags,
      ],
      env: {
        COPILOT_PROVIDER_BASE_URL: `${model}/v1`,
        COPILOT_PROVIDER_TYPE: 'openai',
        COPILOT_PROVIDER_API_KEY: 'scripted',
        COPILOT_OFFLINE: 'true',
        COPILOT_MODEL: 'gpt-5',
      },
    }),
  },
  {
    agent: 'qwen-code',
    title: `Qwen Code ${VERSIONS['qwen-code']}`,
    settings: '.qwen/settings.json',
    shell: (command) => ({ name: 'run_shell_command', input: { command, description: 'Runs it.' } }),
    trust: [],
    start: ({ model }, flags) => ({
      line: [
        process.execPath,
        executable('@qwen-code/qwen-code/cli.js', qwen),
        '--auth-type',
        'openai',
        '--yolo',
        '--output-format',
        'stream-json',
        '-p',
        'Go on.',
        ...flags,
      ],
      env: { OPENAI_BASE_URL: `${model}/v1`, OPENAI_API_KEY: 'scripted', OPENAI_MODEL: 'gpt-5' },
    }),
  },
  {
    agent: 'opencode',
    title: `opencode ${VERSIONS.opencode}`,
    settings: '.config/opencode/plugins/tacho.js',
    projectSettings: '.opencode/plugins/tacho.js',
    shell: (command) => ({ name: 'bash', input: { command, description: 'Runs it.' } }),
    trust: [],
    start: ({ home, model }, flags) => {
      const provider = {
        npm: '@ai-sdk/openai-compatible',
        name: 'scripted',
        options: { baseURL: `${model}/v1`, apiKey: 'scripted' },
        models: { 'gpt-5': { name: 'gpt-5' } },
      }
      write(path.join(home, '.config/opencode/opencode.json'), JSON.stringify({ provider: { scripted: provider } }))
      const asked = ['run', '--model', 'scripted/gpt-5', '--format', 'json', '--auto', ...flags, 'Go on.']
      return {
        line: [executable('opencode-linux-x64/bin/opencode', opencode), ...asked],
        env: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
      }
    },
  },
  {
    agent: 'pi',
    title: `pi ${VERSIONS.pi}`,
    settings: '.pi/agent/extensions/tacho.js',
    projectSettings: '.pi/extensions/tacho.js',
    shell: (command) => ({ name: 'bash', input: { command } }),
    trust: [],
    start: ({ home, model }, flags) => {
      const provider = {
        baseUrl: `${model}/v1`,
        api: 'openai-completions',
        apiKey: 'scripted',
        models: [{ id: 'gpt-5' }],
      }
      write(path.join(home, '.pi/agent/models.json'), JSON.stringify({ providers: { scripted: provider } }))
      const asked = ['--provider', 'scripted', '--model', 'gpt-5', '--mode', 'json', '-p', 'Go on.']
      return {
        line: [process.execPath, executable('@mariozechner/pi-coding-agent/dist/cli.js', pi), ...asked, ...flags],
        env: { PI_OFFLINE: '1' },
      }
    },
  },
]
