/** The output of a hook. Claude Code and Codex read the same fields; an empty text means "continue as usual". */

import type { AgentName } from './record.ts'

/** The answer before a tool that may run: the agent's own rules go on. */
export const NO_OBJECTION = '{}'

/** Refuses the tool; the model reads the reason. */
export function deny(reason: string): string {
  return decision('deny', reason)
}

/** Asks the person in front of the agent. */
function ask(reason: string): string {
  return decision('ask', reason)
}

/** Shows a message to the person in front of the agent. */
export function warn(systemMessage: string): string {
  return JSON.stringify({ systemMessage })
}

/** No policies are known. Only Claude Code can ask its user instead. */
export function notConfigured(reason: string, agent: AgentName, unconfigured: 'deny' | 'ask'): string {
  return unconfigured === 'ask' && agent === 'claude-code' ? ask(reason) : deny(reason)
}

function decision(permissionDecision: 'deny' | 'ask', permissionDecisionReason: string): string {
  const hookSpecificOutput = { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason }
  return JSON.stringify({ hookSpecificOutput })
}
