/**
 * The tools of the MCP server. Each is one read of the operator API. Its input is the parameters of that endpoint, so it cannot
 * differ from the contract. No tool changes anything or decides approvals: people do that.
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

const PAGED = 'Results come in pages; pass nextCursor as cursor to read on.'

export const TOOLS: readonly Tool[] = [
  {
    name: 'list_runs',
    description: `List agent runs, newest first, by status, agent, session or time. ${PAGED}`,
    read: 'listOperatorRuns',
  },
  { name: 'read_run', description: 'Read one run: status, agent, usage and cost.', read: 'readOperatorRun' },
  {
    name: 'list_run_events',
    description: `List the steps of a run in order, without payloads, filtered by type or label. ${PAGED}`,
    read: 'listEventRows',
  },
  {
    name: 'read_event',
    description: 'Read one step of a run with its payload: messages, tool input and output, error.',
    read: 'readEvent',
  },
  {
    name: 'trace_event',
    description: 'Read what happened to one event: stored, rejected and why, or never received.',
    read: 'traceEvent',
  },
  {
    name: 'read_usage',
    description: `Read tokens, cost and runs by agent, model and time. ${PAGED}`,
    read: 'readUsage',
  },
  {
    name: 'list_issues',
    description: `List issues: recurring problems that detections of agents were grouped into. ${PAGED}`,
    read: 'listIssues',
  },
  { name: 'read_issue', description: 'Read one issue with the facts its occurrences share.', read: 'readIssue' },
  {
    name: 'list_issue_occurrences',
    description: `List the occurrences of an issue, newest first, with their runs. ${PAGED}`,
    read: 'listOccurrences',
  },
  {
    name: 'list_approvals',
    description: `List tool calls that waited or wait for a person's approval, and what was decided. ${PAGED}`,
    read: 'listApprovals',
  },
  {
    name: 'read_approval',
    description: 'Read one approval: tool, policy, decision and reason.',
    read: 'readApproval',
  },
  { name: 'list_policies', description: `List the policies of a workspace. ${PAGED}`, read: 'listPolicies' },
  {
    name: 'read_policy_version',
    description: 'Read one version of a policy: its rule and condition.',
    read: 'readPolicyVersion',
  },
  { name: 'list_prompts', description: `List the prompts of a workspace. ${PAGED}`, read: 'listPrompts' },
  { name: 'read_prompt_version', description: 'Read one version of a prompt.', read: 'readPromptVersion' },
  {
    name: 'list_deployments',
    description: `List which versions of prompts and policies are deployed in an environment. ${PAGED}`,
    read: 'listDeployments',
  },
  {
    name: 'list_simulations',
    description: `List simulations of policies on recorded tool calls. ${PAGED}`,
    read: 'listSimulations',
  },
  {
    name: 'read_simulation',
    description: 'Read the result of a simulation: what the policy would have decided, by tool.',
    read: 'readSimulation',
  },
]
