/** Describes each coding agent in the names that it documents. All other code is the same for all agents. */
export type AgentName = 'claude-code' | 'codex' | 'gemini-cli' | 'copilot' | 'qwen-code' | 'cursor' | 'opencode' | 'pi'

/** Kind of a tool, independent of its name in the agent. Policies see it as the risk signal `tool_shell`, and so on. */
export type ToolKind = 'shell' | 'edit' | 'fetch' | 'read'

export interface AgentForm {
  readonly title: string
  /** The steps that get a hook: the agent's name of each step, with Claude Code's name, which we use. */
  readonly events: Readonly<Record<string, string>>
  /** Fields that the agent names differently: its name of each, with ours. */
  readonly fields: Readonly<Record<string, string>>
  /** For steps that do not name their tool: the tool's name, and the fields that are its input. */
  readonly tools?: Readonly<Record<string, readonly [name: string, ...input: string[]]>>
  /** The JSON text of a refusal, before and after the reason. */
  readonly denial: readonly [before: string, after: string]
  /** What the hook prints if there is no objection. Default: nothing. */
  readonly pass?: string
  /** Whether the agent shows a `systemMessage` to its user. */
  readonly showsMessages: boolean
  readonly settings: SettingsForm
  /** The agent's settings for the whole machine, if it has such settings. */
  readonly managed?: ManagedForm
  /** Settings that switch the agent's hooks off, in the user's home and in the project. */
  readonly off?: { readonly files: readonly string[]; readonly pattern: RegExp; readonly byManaged?: RegExp }
  /** Set if hooks get no call id, or not the id of the session files. The tool and its input then identify a call. */
  readonly hasNoCallIds?: true
  readonly kinds: Readonly<Record<ToolKind, readonly string[]>>
}

interface SettingsForm {
  /** Path below the user's home, or below the folder in the variable. */
  readonly user: string
  readonly variable?: string
  readonly project: string
  /**
   * `groups`: hooks are in groups, as in Claude Code. `list`: they are in the list of an event. `module`: the agent has
   * no commands, but loads a module (modules.ts).
   */
  readonly form: 'groups' | 'list' | 'module'
  /** The agent's names for a hook's fields `command` and `timeout`, if it uses others. */
  readonly names?: { readonly command: string; readonly timeout: string }
  /** Further settings of each hook. `matchers`: the tools that the hook of a step is for. */
  readonly more?: Readonly<Record<string, unknown>>
  readonly matchers?: Readonly<Record<string, string>>
  readonly unitsPerSecond: number
}

interface ManagedForm {
  /** Path below the root, on Linux and on macOS. We write the file only if it does not exist. */
  readonly file: string
  readonly darwin?: string
  /** Further members of the file, beside the hooks. */
  readonly beside: Readonly<Record<string, unknown>>
  /** Whether the hooks of users and projects no longer run. */
  readonly isAlone: boolean
}

const same = (...names: string[]): Record<string, string> => Object.fromEntries(names.map((name) => [name, name]))

const COMMON = same(
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PermissionRequest',
  'PostToolUse',
  'Stop',
  'SubagentStop',
  'SubagentStart',
  'SessionEnd',
)

const CLAUDE_DENIAL = [
  '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":',
  '}}',
] as const

/**
 * Claude Code reads these variables before it starts a hook. Two switch hooks off, one stops the session files, and
 * with the others a repository could run a program that was not judged.
 */
const EMPTIED = [
  'CLAUDE_CODE_SIMPLE',
  'CLAUDE_CODE_SAFE_MODE',
  'CLAUDE_CODE_SKIP_PROMPT_HISTORY',
  'CLAUDE_CODE_SHELL',
  'CLAUDE_CODE_SHELL_PREFIX',
  'BASH_ENV',
  'ENV',
  'LD_PRELOAD',
  'LD_AUDIT',
  'LD_LIBRARY_PATH',
]

/** Format that our own module reads: see modules.ts. */
const MODULE_DENIAL = ['{"refused":', '}'] as const

export const AGENTS: Readonly<Record<AgentName, AgentForm>> = {
  'claude-code': {
    title: 'Claude Code',
    events: { ...COMMON, ...same('PostToolUseFailure', 'Notification') },
    fields: {},
    denial: CLAUDE_DENIAL,
    showsMessages: true,
    settings: {
      user: '.claude/settings.json',
      variable: 'CLAUDE_CONFIG_DIR',
      project: '.claude/settings.json',
      form: 'groups',
      unitsPerSecond: 1,
    },
    managed: {
      file: 'etc/claude-code/managed-settings.d/tacho.json',
      darwin: 'Library/Application Support/ClaudeCode/managed-settings.d/tacho.json',
      beside: {
        allowManagedHooksOnly: true,
        disableAllHooks: false,
        // Disabled because these commands would run without a tool call.
        disableSkillShellExecution: true,
        env: Object.fromEntries(EMPTIED.map((name) => [name, ''])),
      },
      isAlone: true,
    },
    off: {
      files: ['.claude/settings.json', '.claude/settings.local.json'],
      pattern: /"disableAllHooks"\s*:\s*true/,
      byManaged: /"allowManagedHooksOnly"\s*:\s*true/,
    },
    kinds: {
      shell: ['Bash', 'PowerShell', 'Monitor'],
      edit: ['Edit', 'Write', 'MultiEdit', 'NotebookEdit'],
      fetch: ['WebFetch', 'WebSearch'],
      read: ['Read', 'Grep', 'Glob'],
    },
  },
  codex: {
    title: 'Codex',
    events: { ...COMMON, ...same('Interrupt') },
    // `notify` and hooks get the same fields under different names.
    fields: { 'thread-id': 'session_id', type: 'hook_event_name' },
    denial: CLAUDE_DENIAL,
    showsMessages: true,
    settings: {
      user: '.codex/hooks.json',
      variable: 'CODEX_HOME',
      project: '.codex/hooks.json',
      form: 'groups',
      unitsPerSecond: 1,
    },
    managed: {
      file: 'etc/codex/requirements.toml',
      beside: { allow_managed_hooks_only: true, features: { hooks: true } },
      isAlone: true,
    },
    off: {
      files: ['.codex/config.toml'],
      pattern: /^\s*(features\.)?hooks\s*=\s*false/m,
      byManaged: /^\s*allow_managed_hooks_only\s*=\s*true/m,
    },
    kinds: { shell: ['Bash'], edit: ['apply_patch'], fetch: ['web_search'], read: ['view_image'] },
  },
  'gemini-cli': {
    title: 'Gemini CLI',
    hasNoCallIds: true,
    events: {
      ...same('SessionStart', 'SessionEnd', 'Notification'),
      BeforeAgent: 'UserPromptSubmit',
      BeforeTool: 'PreToolUse',
      AfterTool: 'PostToolUse',
      AfterAgent: 'Stop',
    },
    fields: { prompt_response: 'last_assistant_message' },
    denial: ['{"decision":"deny","reason":', '}'],
    showsMessages: true,
    settings: {
      user: '.gemini/settings.json',
      project: '.gemini/settings.json',
      form: 'groups',
      unitsPerSecond: 1_000,
    },
    managed: {
      file: 'etc/gemini-cli/settings.json',
      darwin: 'Library/Application Support/GeminiCli/settings.json',
      beside: { hooksConfig: { enabled: true, disabled: [] } },
      isAlone: false,
    },
    off: { files: ['.gemini/settings.json'], pattern: /"hooksConfig"\s*:\s*\{[^}]*"enabled"\s*:\s*false/ },
    kinds: {
      shell: ['run_shell_command'],
      edit: ['write_file', 'replace'],
      fetch: ['web_fetch', 'google_web_search'],
      read: ['read_file', 'read_many_files', 'grep_search', 'search_file_content', 'glob', 'list_directory'],
    },
  },
  copilot: {
    title: 'Copilot CLI',
    hasNoCallIds: true,
    events: {
      sessionStart: 'SessionStart',
      userPromptSubmitted: 'UserPromptSubmit',
      preToolUse: 'PreToolUse',
      postToolUse: 'PostToolUse',
      postToolUseFailure: 'PostToolUseFailure',
      errorOccurred: 'ErrorOccurred',
      agentStop: 'Stop',
      subagentStop: 'SubagentStop',
      sessionEnd: 'SessionEnd',
    },
    fields: {
      sessionId: 'session_id',
      toolName: 'tool_name',
      toolArgs: 'tool_input',
      toolResult: 'tool_response',
      transcriptPath: 'transcript_path',
    },
    denial: ['{"permissionDecision":"deny","permissionDecisionReason":', '}'],
    showsMessages: false,
    settings: {
      user: '.copilot/hooks/tacho.json',
      project: '.github/hooks/tacho.json',
      form: 'list',
      names: { command: 'bash', timeout: 'timeoutSec' },
      more: { type: 'command' },
      unitsPerSecond: 1,
    },
    off: { files: ['.copilot/hooks/tacho.json', '.github/hooks/tacho.json'], pattern: /"disableAllHooks"\s*:\s*true/ },
    kinds: {
      shell: ['bash', 'write_bash', 'powershell', 'write_powershell'],
      edit: ['create', 'edit', 'str_replace_editor', 'apply_patch'],
      fetch: ['web_fetch', 'web_search'],
      read: ['view', 'grep', 'rg', 'glob'],
    },
  },
  'qwen-code': {
    title: 'Qwen Code',
    hasNoCallIds: true,
    events: { ...COMMON, ...same('PostToolUseFailure', 'Notification') },
    fields: {},
    denial: CLAUDE_DENIAL,
    showsMessages: true,
    settings: {
      user: '.qwen/settings.json',
      project: '.qwen/settings.json',
      form: 'groups',
      unitsPerSecond: 1_000,
    },
    managed: {
      file: 'etc/qwen-code/settings.json',
      darwin: 'Library/Application Support/QwenCode/settings.json',
      beside: { disableAllHooks: false },
      isAlone: false,
    },
    off: { files: ['.qwen/settings.json'], pattern: /"disableAllHooks"\s*:\s*true/ },
    kinds: {
      shell: ['run_shell_command', 'monitor'],
      edit: ['write_file', 'edit', 'notebook_edit'],
      fetch: ['web_fetch', 'web_search'],
      read: ['read_file', 'read_many_files', 'grep_search', 'glob', 'list_directory'],
    },
  },
  cursor: {
    title: 'Cursor',
    events: {
      sessionStart: 'SessionStart',
      beforeSubmitPrompt: 'UserPromptSubmit',
      beforeShellExecution: 'PreToolUse',
      beforeMCPExecution: 'PreToolUse',
      beforeReadFile: 'PreToolUse',
      preToolUse: 'PreToolUse',
      afterShellExecution: 'PostToolUse',
      afterMCPExecution: 'PostToolUse',
      postToolUse: 'PostToolUse',
      subagentStart: 'SubagentStart',
      subagentStop: 'SubagentStop',
      afterAgentResponse: 'Stop',
      sessionEnd: 'SessionEnd',
    },
    fields: {
      conversation_id: 'session_id',
      text: 'last_assistant_message',
      output: 'tool_response',
      tool_output: 'tool_response',
      result_json: 'tool_response',
      subagent_type: 'agent_type',
    },
    tools: {
      beforeShellExecution: ['Shell', 'command'],
      afterShellExecution: ['Shell', 'command'],
      beforeReadFile: ['Read', 'file_path'],
    },
    denial: ['{"permission":"deny","agent_message":', '}'],
    // With failClosed, an empty answer counts as no answer.
    pass: '{}',
    showsMessages: false,
    settings: {
      user: '.cursor/hooks.json',
      project: '.cursor/hooks.json',
      form: 'list',
      more: { failClosed: true },
      // Cursor has separate steps for its other tools.
      matchers: { preToolUse: 'Write|Delete', postToolUse: 'Write|Delete' },
      unitsPerSecond: 1,
    },
    managed: {
      file: 'etc/cursor/hooks.json',
      darwin: 'Library/Application Support/Cursor/hooks.json',
      beside: { version: 1 },
      isAlone: false,
    },
    kinds: { shell: ['Shell'], edit: ['Write', 'Delete'], fetch: [], read: ['Read'] },
  },
  opencode: {
    title: 'opencode',
    events: same('SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop', 'SessionEnd'),
    fields: {},
    denial: MODULE_DENIAL,
    showsMessages: true,
    settings: {
      user: '.config/opencode/plugins/tacho.js',
      project: '.opencode/plugins/tacho.js',
      form: 'module',
      unitsPerSecond: 1_000,
    },
    kinds: {
      shell: ['bash'],
      edit: ['write', 'edit', 'multiedit', 'patch', 'apply_patch'],
      fetch: ['webfetch', 'websearch'],
      read: ['read', 'grep', 'glob', 'list'],
    },
  },
  pi: {
    title: 'pi',
    events: same(
      'SessionStart',
      'UserPromptSubmit',
      'PreToolUse',
      'PostToolUse',
      'PostToolUseFailure',
      'Stop',
      'SessionEnd',
    ),
    fields: {},
    denial: MODULE_DENIAL,
    showsMessages: true,
    settings: {
      user: '.pi/agent/extensions/tacho.js',
      project: '.pi/extensions/tacho.js',
      form: 'module',
      unitsPerSecond: 1_000,
    },
    kinds: { shell: ['bash'], edit: ['write', 'edit'], fetch: [], read: ['read', 'grep', 'find', 'ls'] },
  },
}

export const AGENT_NAMES = Object.keys(AGENTS) as AgentName[]

export function isAgentName(name: unknown): name is AgentName {
  return typeof name === 'string' && Object.hasOwn(AGENTS, name)
}

/** The kind of a tool, as conditions see it in `risk.signals`. */
export function signalsOf(agent: AgentName, toolName: string): string[] {
  const kinds = Object.entries(AGENTS[agent].kinds)
  return kinds.filter(([, names]) => names.includes(toolName)).map(([kind]) => `tool_${kind}`)
}
