/** What differs between coding agents. Everything else is the same for all: one description for each, in the names that they document. */
export type AgentName = 'claude-code' | 'codex' | 'gemini-cli' | 'copilot'

/** What a tool does, whatever its agent calls it. Policies see it as the risk signal `tool_shell`, and so on. */
export type ToolKind = 'shell' | 'edit' | 'fetch' | 'read'

export interface AgentForm {
  readonly title: string
  /** The steps that get a hook: the agent's name of each, and ours, which are those of Claude Code. */
  readonly events: Readonly<Record<string, string>>
  /** Its names of fields that are called otherwise here. */
  readonly fields: Readonly<Record<string, string>>
  /** The answer that refuses a tool, with its parts around the reason as JSON text. */
  readonly denial: readonly [before: string, after: string]
  /** Whether it shows a `systemMessage` to the person in front of it. */
  readonly showsMessages: boolean
  readonly settings: {
    /** Below the home of the user, or below the variable's folder. */
    readonly user: string
    readonly variable?: string
    readonly project: string
    /** `flat`: hooks stand in the list of an event, without groups, in a file of their own. */
    readonly form: 'groups' | 'flat'
    readonly unitsPerSecond: number
  }
  readonly kinds: Readonly<Record<ToolKind, readonly string[]>>
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
    // `notify` gets other names than hooks.
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
    kinds: { shell: ['Bash'], edit: ['apply_patch'], fetch: ['web_search'], read: ['view_image'] },
  },
  'gemini-cli': {
    title: 'Gemini CLI',
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
    kinds: {
      shell: ['run_shell_command'],
      edit: ['write_file', 'replace'],
      fetch: ['web_fetch', 'google_web_search'],
      read: ['read_file', 'read_many_files', 'grep_search', 'search_file_content', 'glob', 'list_directory'],
    },
  },
  copilot: {
    title: 'Copilot CLI',
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
      form: 'flat',
      unitsPerSecond: 1,
    },
    kinds: {
      shell: ['bash', 'write_bash', 'powershell', 'write_powershell'],
      edit: ['create', 'edit', 'str_replace_editor', 'apply_patch'],
      fetch: ['web_fetch', 'web_search'],
      read: ['view', 'grep', 'rg', 'glob'],
    },
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
