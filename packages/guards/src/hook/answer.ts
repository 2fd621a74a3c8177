/** The output of a hook; an empty text means "continue as usual". */
import { AGENTS, type AgentName } from './agents.ts'

/** Answer before a tool that may run: the agent continues with its own rules. */
export const NO_OBJECTION = '{}'

/** Refuses the tool; the model reads the reason. */
export function deny(reason: string, agent: AgentName): string {
  return AGENTS[agent].denial.join(JSON.stringify(reason))
}

/** Asks the agent's user. */
function ask(permissionDecisionReason: string): string {
  const hookSpecificOutput = { hookEventName: 'PreToolUse', permissionDecision: 'ask', permissionDecisionReason }
  return JSON.stringify({ hookSpecificOutput })
}

/** Shows a message to the agent's user. */
export function warn(systemMessage: string, agent: AgentName): string {
  return AGENTS[agent].showsMessages ? JSON.stringify({ systemMessage }) : ''
}

/** Answer if no policies are known. Only Claude Code can ask its user instead of denying. */
export function notConfigured(reason: string, agent: AgentName, unconfigured: 'deny' | 'ask'): string {
  return unconfigured === 'ask' && agent === 'claude-code' ? ask(reason) : deny(reason, agent)
}
