/** Tags that group the endpoints in the documents, most useful first. */
export const TAGS = {
  Events: 'What agents did. Clients send events in batches; each event is validated separately.',
  Runs: 'Agent executions: lists, details, timelines and usage.',
  Scores: 'What people, users and programs say of runs and their steps.',
  Search: 'Search over the payloads of events, where it is switched on.',
  Alerts: 'Rules about runs, approvals and costs that tell webhooks, and budgets.',
  Costs: 'Prices of models, for estimates of what calls cost.',
  Issues: 'Recurring problems, grouped by stable facts, and the records behind them.',
  Approvals: 'Tool calls that a person must approve before they run.',
  'Runtime configuration': 'The deployed prompts and policies for the agents of an environment.',
  Prompts: 'Prompts and their versions. A version never changes.',
  Policies: 'Policies, their versions, and simulations on recorded tool calls.',
  Deployments: 'Which versions of prompts and policies are deployed in an environment.',
  Webhooks: 'Signed messages about approvals and issues to other programs.',
  Tenants: 'Workspaces and their environments.',
  Retention: 'How long things are kept, what is removed, and runs that are kept forever.',
  'API keys': 'Credentials for agents. A key selects the environment.',
  'Operator tokens': 'Credentials for scripts.',
  Operators: 'People: their roles and invitations.',
  'Sign-in': 'How people start and end sessions.',
  Me: 'The caller: identity, permissions, own sessions and own password.',
  Erasures: 'What operators erased on request, with its receipts.',
  'Audit log': 'Who did what, and when. Entries never change.',
  Doctor: 'Checks of the installation, and the history of one event.',
  Operation: 'Running the installation itself.',
} as const

export type Tag = keyof typeof TAGS
