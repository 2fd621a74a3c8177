/**
 * The tools of the MCP server. Each is one read of the operator API. Its input is the parameters of that endpoint, so it cannot
 * differ from the contract. No tool changes anything or decides approvals: people do that. A model reads all of this before its first question,
 * so it is short.
 */
import type { OperatorRoutes } from '@tacho/client/operator.ts'

type Reads = {
  [Name in keyof OperatorRoutes]: OperatorRoutes[Name]['method'] extends 'GET' ? Name : never
}[keyof OperatorRoutes]

export interface Tool {
  name: string
  description: string
  /** The endpoint that answers the tool. */
  read: Reads
}

/** What a name does not say, in the arguments of every tool. */
export const NOTES: Readonly<Record<string, string>> = {
  agent: 'its id or name',
  minCost: 'US dollars, as in "0.25"',
  order: 'arrival follows a run',
  before: 'an eventId',
  eventType: 'LLM_CALL, TOOL_CALL, …',
}

export const TOOLS: readonly Tool[] = [
  {
    name: 'list_runs',
    description: 'List agent runs, newest first.',
    read: 'listOperatorRuns',
  },
  { name: 'read_run', description: 'Read one run: status, agent, usage and cost.', read: 'readOperatorRun' },
  {
    name: 'list_run_events',
    description: 'List the steps of a run, without payloads.',
    read: 'listEventRows',
  },
  {
    name: 'read_event',
    description: 'Read one step with its payload; a long one in pieces, by nextOffset.',
    read: 'readEvent',
  },
  {
    name: 'trace_event',
    description: 'Read whether an event was stored, rejected (why), or never received.',
    read: 'traceEvent',
  },
  {
    name: 'read_usage',
    description: 'Read tokens, cost and runs by agent, model and time.',
    read: 'readUsage',
  },
  {
    name: 'list_issues',
    description: 'List issues: recurring problems.',
    read: 'listIssues',
  },
  { name: 'read_issue', description: 'Read one issue and the facts of its occurrences.', read: 'readIssue' },
  {
    name: 'list_issue_occurrences',
    description: 'List the occurrences of an issue with their runs.',
    read: 'listOccurrences',
  },
  {
    name: 'list_approvals',
    description: 'List tool calls that wait or waited for a person, and the decisions.',
    read: 'listApprovals',
  },
  {
    name: 'read_approval',
    description: 'Read one approval: tool, policy, decision and reason.',
    read: 'readApproval',
  },
  { name: 'list_policies', description: 'List policies.', read: 'listPolicies' },
  {
    name: 'read_policy_version',
    description: 'Read one version of a policy: its rule and condition.',
    read: 'readPolicyVersion',
  },
  { name: 'list_prompts', description: 'List prompts.', read: 'listPrompts' },
  { name: 'read_prompt_version', description: 'Read one version of a prompt.', read: 'readPromptVersion' },
  {
    name: 'list_deployments',
    description: 'List the deployed versions of prompts and policies.',
    read: 'listDeployments',
  },
  {
    name: 'list_simulations',
    description: 'List simulations of policies on recorded tool calls.',
    read: 'listSimulations',
  },
  {
    name: 'read_simulation',
    description: 'Read what a policy would have decided, by tool.',
    read: 'readSimulation',
  },
]
