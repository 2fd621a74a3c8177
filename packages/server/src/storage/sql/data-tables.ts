/**
 * How the rows of every table are removed. A table that is missing here fails a test: removed runs, erasures and deleted
 * environments must leave nothing behind in it.
 */
export interface TableLife {
  /**
   * What happens when a run is removed. `removed`: its rows are deleted (removal.ts; erased-records.ts for rows with
   * its external id). `counted_out`: its numbers are subtracted. `stays`: no row belongs to a run.
   */
  run: 'removed' | 'counted_out' | 'stays'
  /** `removed`: the rows of a deleted environment are deleted by their `environment_id`. */
  environment: 'removed' | 'stays'
  /** Why rows stay, or how they are removed if not by the plain rule. */
  note?: string
}

const ofRun = (note?: string): TableLife => ({ run: 'removed', environment: 'removed', ...(note && { note }) })
const ofEnvironment = (note?: string): TableLife => ({ run: 'stays', environment: 'removed', ...(note && { note }) })
const elsewhere = (note: string): TableLife => ({ run: 'stays', environment: 'stays', note })

export const DATA_TABLES: Readonly<Record<string, TableLife>> = {
  runs: ofRun(),
  events: ofRun('In slices, after their run: removed_runs says which are left.'),
  payload_blocks: ofRun('With the last events of the run, because rows name blocks.'),
  removed_runs: ofRun('Until the last event of the run is deleted.'),
  version_runs: ofRun(),
  usage_hours: { run: 'counted_out', environment: 'removed', note: 'Retention keeps the numbers.' },
  latency_hours: { run: 'counted_out', environment: 'removed', note: 'Retention keeps the numbers.' },
  uncosted_hours: { run: 'counted_out', environment: 'removed', note: 'Retention keeps the numbers.' },
  tool_hours: { run: 'counted_out', environment: 'removed', note: 'Retention keeps the numbers.' },
  version_latencies: { run: 'counted_out', environment: 'removed', note: 'Retention keeps the numbers.' },
  approvals: ofRun('Retention keeps them for a time of their own.'),
  issue_records: ofRun('Retention keeps them for a time of their own.'),
  issue_affected: ofRun('With the records.'),
  issue_fingerprints: ofRun('With their last record; otherwise counted again.'),
  issues: ofRun('With their last fingerprint; otherwise counted again.'),
  issue_activity: ofRun('With the issue.'),
  webhook_deliveries: ofRun('Messages about removed approvals and issues.'),
  work: ofRun('With what it names.'),
  simulations: ofRun('Results that quote a removed run.'),
  idempotency_keys: {
    run: 'removed',
    environment: 'stays',
    note: 'Answers that quote what was erased. They have no environment and are deleted after a day.',
  },
  search_runs: ofRun(),
  search_entries: ofRun('In SQLite, a trigger deletes their words from search_words: only hashes, until FTS5 merges.'),
  search_settings: ofEnvironment(),
  agents: ofEnvironment('An erased agent goes when its last run is removed.'),
  envelopes: ofEnvironment('Those of an erased agent or client go with the erasure.'),
  configuration_clients: ofEnvironment('An erased client goes with the erasure.'),
  models: ofEnvironment('Names of models, bounded; no text of a run.'),
  tools: ofEnvironment('Names of tools, bounded; no text of a run.'),
  rejections: ofEnvironment('Only a hash of the ids; the oldest are deleted.'),
  erasures: ofEnvironment('The receipts.'),
  erased_keys: ofEnvironment('Hashes that refuse late retries.'),
  erasure_revisions: ofEnvironment(),
  environment_numbers: ofEnvironment(),
  approval_feeds: ofEnvironment(),
  deployments: ofEnvironment(),
  deployment_changes: ofEnvironment(),
  configurations: ofEnvironment(),
  run_views: ofEnvironment(),
  imports: ofEnvironment(),
  retention_settings: ofEnvironment('Those of a workspace stay.'),
  retention_progress: ofEnvironment(),
  stalled_rules: ofEnvironment(),
  alerts: ofEnvironment(),
  webhooks: ofEnvironment(),
  api_keys: ofEnvironment(),
  environments: elsewhere('Removed last, by its id.'),
  audit_log: {
    run: 'removed',
    environment: 'stays',
    note: 'Details about erased runs and approvals go. The evidence of who did what outlives the data.',
  },
  control: elsewhere('One row.'),
  secrets: elsewhere('Secrets of the installation.'),
  workspaces: elsewhere('Of the installation.'),
  operator_tokens: elsewhere('Of a workspace.'),
  operators: elsewhere('People.'),
  operator_roles: elsewhere('People.'),
  operator_invitations: elsewhere('People.'),
  operator_accounts: elsewhere('People.'),
  operator_sessions: elsewhere('People.'),
  operator_second_factors: elsewhere('People.'),
  sign_in_challenges: elsewhere('People.'),
  prices: elsewhere('Of a workspace.'),
  prompts: elsewhere('Of a workspace.'),
  prompt_versions: elsewhere('Of a workspace.'),
  policies: elsewhere('Of a workspace.'),
  policy_versions: elsewhere('Of a workspace.'),
  nodes: elsewhere('Processes of the installation.'),
  copies: elsewhere('The state of a copy into this store.'),
  migrations: elsewhere('The schema.'),
}
