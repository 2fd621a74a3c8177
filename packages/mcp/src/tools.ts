/**
 * The tools of the MCP server. Each tool calls one read endpoint of the operator API, and its input is that endpoint's
 * parameters. So it cannot differ from the contract. No tool changes anything or decides approvals: people do that.
 * Descriptions are short, because a model reads all of them before its first question.
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

/** Explanations of arguments whose names are not enough, for every tool. */
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
    description: 'List runs, newest first.',
    read: 'listOperatorRuns',
  },
  { name: 'read_run', description: 'Read a run.', read: 'readOperatorRun' },
  {
    name: 'list_run_events',
    description: 'List steps, without payloads.',
    read: 'listEventRows',
  },
  {
    name: 'read_event',
    description: 'Read a step with payload, in pieces by nextOffset.',
    read: 'readEvent',
  },
  {
    name: 'trace_event',
    description: 'Was an event stored or rejected?',
    read: 'traceEvent',
  },
  {
    name: 'read_usage',
    description: 'Read tokens, cost and runs by agent, model and time.',
    read: 'readUsage',
  },
  {
    name: 'list_issues',
    description: 'List issues.',
    read: 'listIssues',
  },
  { name: 'read_issue', description: 'Read an issue and facts of its occurrences.', read: 'readIssue' },
  {
    name: 'list_issue_occurrences',
    description: 'List occurrences of an issue.',
    read: 'listOccurrences',
  },
  {
    name: 'list_approvals',
    description: 'List requests to a person.',
    read: 'listApprovals',
  },
  {
    name: 'read_approval',
    description: 'Read an approval and its decision.',
    read: 'readApproval',
  },
  { name: 'list_policies', description: 'List policies.', read: 'listPolicies' },
  {
    name: 'read_policy_version',
    description: 'Read a policy version: its condition.',
    read: 'readPolicyVersion',
  },
  { name: 'list_prompts', description: 'List prompts.', read: 'listPrompts' },
  { name: 'read_prompt_version', description: 'Read one version of a prompt.', read: 'readPromptVersion' },
  {
    name: 'list_deployments',
    description: 'List deployed prompts and policies.',
    read: 'listDeployments',
  },
  {
    name: 'list_simulations',
    description: 'List policy simulations.',
    read: 'listSimulations',
  },
  {
    name: 'read_simulation',
    description: 'Read what a policy would have decided.',
    read: 'readSimulation',
  },
]
