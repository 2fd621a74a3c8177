/** Every table and its key, ordered so that each row's references already exist. A copy includes these. */
import type { Storage } from '../storage.ts'

export type Engine = Storage['engine']

export interface CopiedTable {
  name: string
  /** Unique and never null. The copy reads rows in this order. */
  key: readonly string[]
  /** A faster order for this engine, because its rows are stored that way. Also unique. */
  walk?: Partial<Record<Engine, readonly string[]>>
  /** Columns that only this engine has. */
  only?: Partial<Record<Engine, readonly string[]>>
}

const table = (name: string, ...key: string[]): CopiedTable => ({ name, key })

export const TABLES: readonly CopiedTable[] = [
  table('control', 'id'),
  table('secrets', 'name'),
  table('workspaces', 'id'),
  table('environments', 'id'),
  table('api_keys', 'id'),
  table('operator_tokens', 'id'),
  table('operators', 'id'),
  table('operator_roles', 'scope', 'operator_id'),
  table('operator_invitations', 'id'),
  table('operator_accounts', 'id'),
  table('operator_sessions', 'id'),
  table('operator_second_factors', 'id'),
  table('sign_in_challenges', 'id'),
  table('audit_log', 'id'),
  table('prompts', 'workspace_id', 'id'),
  table('prompt_versions', 'workspace_id', 'prompt_id', 'number'),
  table('policies', 'workspace_id', 'id'),
  table('policy_versions', 'workspace_id', 'policy_id', 'number'),
  table('deployments', 'environment_id', 'kind', 'item_id'),
  table('deployment_changes', 'environment_id', 'publication', 'kind', 'item_id'),
  table('configurations', 'environment_id'),
  table('simulations', 'id'),
  table('run_views', 'environment_id', 'id'),
  table('imports', 'environment_id'),
  table('prices', 'workspace_id', 'model'),
  table('stalled_rules', 'environment_id'),
  table('retention_settings', 'workspace_id', 'environment_id'),
  table('retention_progress', 'environment_id'),
  table('alerts', 'id'),
  table('webhooks', 'id'),
  table('webhook_deliveries', 'webhook_id', 'id'),
  table('idempotency_keys', 'actor_kind', 'actor_id', 'idempotency_key'),
  table('agents', 'environment_id', 'id'),
  table('models', 'environment_id', 'model_key'),
  table('tools', 'environment_id', 'tool_key'),
  { ...table('envelopes', 'environment_id', 'number'), walk: { sqlite: ['number'] } },
  {
    ...table('events', 'environment_id', 'run', 'event_id'),
    walk: { sqlite: ['seq'], postgres: ['environment_id', 'run', 'time', 'seq'] },
  },
  // After the events, because their new seqs determine the numbers of a run.
  { ...table('runs', 'environment_id', 'id'), only: { postgres: ['last_seq'] } },
  table('payload_blocks', 'environment_id', 'run', 'block'),
  table('usage_hours', 'environment_id', 'hour', 'agent_id', 'model_key', 'slot'),
  table('latency_hours', 'environment_id', 'hour', 'agent_id', 'model_key', 'bucket', 'slot'),
  table('tool_hours', 'environment_id', 'hour', 'agent_id', 'tool_key', 'bucket', 'slot'),
  table('removed_runs', 'environment_id', 'number'),
  table('erasures', 'environment_id', 'id'),
  table('erased_keys', 'environment_id', 'erased_key'),
  table('erasure_revisions', 'environment_id'),
  table('uncosted_hours', 'environment_id', 'hour', 'agent_id', 'model_key', 'context', 'slot'),
  table('version_runs', 'environment_id', 'prompt_version_id', 'run'),
  table('version_latencies', 'environment_id', 'hour', 'prompt_version_id', 'call', 'bucket', 'slot'),
  table('configuration_clients', 'environment_id', 'identified_by', 'client_id'),
  table('rejections', 'environment_id', 'rejection_key'),
  { ...table('issue_records', 'environment_id', 'id'), walk: { sqlite: ['seq'] }, only: { sqlite: ['seq'] } },
  table('issues', 'environment_id', 'id'),
  table('issue_fingerprints', 'environment_id', 'fingerprint'),
  table('issue_affected', 'environment_id', 'fingerprint', 'kind', 'subject_key'),
  table('issue_activity', 'environment_id', 'issue_id', 'at', 'id'),
  table('approval_feeds', 'environment_id'),
  table('approvals', 'environment_id', 'id'),
  table('work', 'environment_id', 'kind', 'subject_id'),
]

/** The index of payload text is not copied. Search is off in the copy. */
const SEARCH = [
  'search_settings',
  'search_runs',
  'search_entries',
  'search_words',
  'search_words_data',
  'search_words_idx',
  'search_words_docsize',
  'search_words_config',
]

/** Data about the store itself: its schema, its processes, copies into it, and what only it uses. */
export const NOT_COPIED = ['migrations', 'nodes', 'copies', 'environment_numbers', ...SEARCH]

export function walkOf({ key, walk }: CopiedTable, engine: Engine): readonly string[] {
  return walk?.[engine] ?? key
}
