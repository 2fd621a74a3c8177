/** Groups of endpoints in the documents, in the order of a reader's interest. */
export const TAGS = {
  Events: 'What agents did: recorded in batches, each event judged on its own.',
  Runs: 'One agent execution each: lists, details, timelines and usage.',
  Issues: 'What goes wrong, grouped by stable facts; and the reports that issues are made of.',
  Approvals: 'Tool calls that a person must approve before they run.',
  'Runtime configuration': 'The prompts and policies that are in force for the agents of an environment.',
  Prompts: 'Prompts and their versions. A version never changes.',
  Policies: 'Policies and their versions, and trials of a policy on recorded tool calls.',
  Deployments: 'Which versions of prompts and policies are in force in an environment.',
  Webhooks: 'Signed messages to other programs about approvals and issues.',
  Tenants: 'Workspaces and their environments.',
  'API keys': 'What agents authenticate with. A key selects the environment.',
  'Operator tokens': 'What scripts authenticate with.',
  Operators: 'People: their roles and invitations.',
  'Sign-in': 'How people begin and end a session.',
  Me: 'The caller: who they are, what they may do, their own sessions and password.',
  'Audit log': 'Who did what, and when. Entries are only ever added.',
  Doctor: 'Checks of the installation, and the fate of one event.',
  Operation: 'Running the installation itself.',
} as const

export type Tag = keyof typeof TAGS
