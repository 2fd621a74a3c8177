/** Every table, once, ordered so that what a row refers to already exists. Tests compare it with both schemas. */
export type Engine = 'sqlite' | 'postgres'

export interface Table {
  /** Columns that are unique and never null. A copy reads rows in this order; so does an export, without the tenant. */
  key: readonly string[]
  /** A faster order for this engine, because its rows are stored that way. Also unique. */
  scanKey?: Partial<Record<Engine, readonly string[]>>
  only?: Partial<Record<Engine, readonly string[]>>
  /**
   * What happens when a run is removed (removal.ts, erased-records.ts). `counted_out`: its numbers are subtracted.
   * `stays`: no row belongs to a run.
   */
  run: 'removed' | 'counted_out' | 'stays'
  environment: 'removed' | 'stays'
  /** Why rows stay, or how they are removed if not by the plain rule. */
  note: string
  isCopied: boolean
  /**
   * The type of its lines in an export. Such a table names all its columns, except the tenant, in the next three
   * members.
   */
  line?: string
  /** Exported columns. Marks: `#` for numbers, `{}` for JSON, and then `?` if the column can be null. */
  exported?: string
  /** Columns that stay with the store: no export has them. */
  kept?: string
  /** Columns that an import computes from the others. Readers do not need them. */
  computed?: string
}

function ofRun(key: string, note = ''): Table {
  return { key: key.split(' '), run: 'removed', environment: 'removed', note, isCopied: true }
}
const ofHours = (key: string): Table => ({ ...ofRun(key, 'Retention keeps the numbers.'), run: 'counted_out' })
const ofEnvironment = (key: string, note = ''): Table => ({ ...ofRun(key, note), run: 'stays' })
const elsewhere = (key: string, note: string): Table => ({ ...ofEnvironment(key, note), environment: 'stays' })
/** Tables that a copy of a store leaves out, because each store fills its own. Search is therefore off in a copy. */
const notCopied = (table: Table): Table => ({ ...table, isCopied: false })

const DESCRIBED = {
  migrations: notCopied(elsewhere('version', 'The schema.')),
  nodes: notCopied(elsewhere('slot', 'Processes of the installation.')),
  copies: notCopied(elsewhere('id', 'The state of a copy into this store.')),
  control: elsewhere('id', 'One row.'),
  secrets: elsewhere('name', 'Secrets of the installation.'),
  workspaces: elsewhere('id', 'Of the installation.'),
  environments: elsewhere('id', 'Removed last, by its id.'),
  environment_numbers: notCopied(ofEnvironment('environment_id')),
  search_settings: notCopied(ofEnvironment('environment_id')),
  api_keys: ofEnvironment('id'),
  operator_tokens: elsewhere('id', 'Of a workspace.'),
  operators: elsewhere('id', 'People.'),
  operator_roles: elsewhere('scope operator_id', 'People.'),
  ended_operators: elsewhere('email_key', 'People.'),
  directory_people: elsewhere('operator_id', 'People.'),
  directory_groups: elsewhere('id', 'People.'),
  directory_members: elsewhere('group_id operator_id', 'People.'),
  operator_invitations: elsewhere('id', 'People.'),
  operator_accounts: elsewhere('id', 'People.'),
  operator_sessions: elsewhere('id', 'People.'),
  operator_second_factors: elsewhere('id', 'People.'),
  sign_in_challenges: elsewhere('id', 'People.'),
  audit_log: {
    ...elsewhere('id', 'Details about erased runs and approvals go. The evidence of who did what outlives the data.'),
    run: 'removed',
  },
  prompts: {
    ...elsewhere('workspace_id id', 'Of a workspace.'),
    line: 'prompt',
    exported: 'id name created_at# newest# archived_at#?',
  },
  prompt_versions: {
    ...elsewhere('workspace_id prompt_id number', 'Of a workspace.'),
    line: 'promptVersion',
    exported: 'prompt_id number# id author created_at# note? content_hash content_bytes# content',
    kept: 'imported_at#?',
    computed: 'row_sum',
  },
  policies: {
    ...elsewhere('workspace_id id', 'Of a workspace.'),
    line: 'policy',
    exported: 'id created_at# newest# archived_at#?',
  },
  policy_versions: {
    ...elsewhere('workspace_id policy_id number', 'Of a workspace.'),
    line: 'policyVersion',
    exported:
      'policy_id number# name description? condition severity action author created_at# note? on_error? approvers#? grants? template?',
    kept: 'imported_at#?',
    computed: 'row_sum',
  },
  deployments: {
    ...ofEnvironment('environment_id kind item_id'),
    line: 'deployment',
    exported: 'kind item_id version# publication# deployed_at# deployed_by',
    kept: 'imported_at#?',
    computed: 'row_sum',
  },
  prompt_shares: {
    ...ofEnvironment('environment_id prompt_id'),
    line: 'promptShare',
    exported: 'prompt_id version# percent# salt started_at# started_by',
    kept: 'imported_at#?',
    computed: 'row_sum',
  },
  deployment_changes: {
    ...ofEnvironment('environment_id publication kind item_id'),
    line: 'deploymentChange',
    exported: `publication# kind item_id action from_version#? to_version#? restores#? at# by_name note? source_environment_id?
        revision share_version#? share_percent#?`,
    kept: 'imported_at#?',
  },
  configurations: ofEnvironment('environment_id'),
  stops: ofEnvironment('environment_id id', 'What operators did. No export has them: a stop holds where it was made.'),
  tool_labels: ofEnvironment('environment_id'),
  simulations: ofRun('id', 'Results that quote a removed run.'),
  run_views: {
    ...ofEnvironment('environment_id id'),
    line: 'runView',
    exported: 'id name query{} last_hours#? columns{} created_at#',
  },
  imports: ofEnvironment('environment_id'),
  prices: elsewhere('workspace_id model', 'Of a workspace.'),
  stalled_rules: ofEnvironment('environment_id'),
  retention_settings: ofEnvironment('workspace_id environment_id', 'Those of a workspace stay.'),
  retention_progress: ofEnvironment('environment_id'),
  alerts: ofEnvironment('id'),
  webhooks: ofEnvironment('id'),
  slack_links: ofEnvironment('id', 'They go with their webhook, and with the account of the person.'),
  notified_browsers: elsewhere('id', 'People.'),
  notification_choices: ofEnvironment('environment_id operator_id', 'They go with the account of the person, too.'),
  quiet_hours: elsewhere('operator_id', 'People.'),
  webhook_deliveries: ofRun('webhook_id id', 'Messages about removed approvals and issues.'),
  idempotency_keys: {
    ...elsewhere(
      'actor_kind actor_id idempotency_key',
      'Answers that quote what was erased. They have no environment and are deleted after a day.',
    ),
    run: 'removed',
  },
  agents: {
    ...ofEnvironment('environment_id id', 'An erased agent goes when its last run is removed.'),
    line: 'agent',
    exported: 'id external_id? name name_time# display_name? archived_at#?',
    computed: 'agent_key',
  },
  models: {
    ...ofEnvironment('environment_id model_key', 'Names of models, bounded; no text of a run.'),
    line: 'model',
    exported: 'model_key model',
  },
  tools: ofEnvironment('environment_id tool_key', 'Names of tools, bounded; no text of a run.'),
  envelopes: {
    ...ofEnvironment('environment_id number', 'Those of an erased agent or client go with the erasure.'),
    scanKey: { sqlite: ['number'] },
  },
  events: {
    ...ofRun('environment_id run event_id', 'In slices, after their run: removed_runs says which are left.'),
    scanKey: { sqlite: ['seq'], postgres: ['environment_id', 'run', 'time', 'seq'] },
  },
  // Copied after the events, because their new seqs determine the numbers of a run.
  runs: { ...ofRun('environment_id id'), only: { postgres: ['last_seq'] } },
  scores: {
    ...ofRun('environment_id run id'),
    line: 'score',
    exported: `run id event_id? name kind number#? category? comment? author_kind author_id author_name scored_at# sent_as?`,
    kept: 'imported_at#?',
  },
  run_scores: ofRun('environment_id name run'),
  payload_blocks: ofRun('environment_id run block', 'With the last events of the run, because rows name blocks.'),
  usage_hours: ofHours('environment_id hour agent_id model_key slot'),
  latency_hours: ofHours('environment_id hour agent_id model_key bucket slot'),
  tool_hours: ofHours('environment_id hour agent_id tool_key bucket slot'),
  removed_runs: ofRun('environment_id number', 'Until the last event of the run is deleted.'),
  erasures: ofEnvironment('environment_id id', 'The receipts.'),
  erased_keys: ofEnvironment('environment_id erased_key', 'Hashes that refuse late retries.'),
  erasure_revisions: ofEnvironment('environment_id'),
  uncosted_hours: ofHours('environment_id hour agent_id model_key context slot'),
  version_runs: ofRun('environment_id prompt_version_id run'),
  version_latencies: ofHours('environment_id hour prompt_version_id call bucket slot'),
  configuration_clients: ofEnvironment(
    'environment_id identified_by client_id',
    'An erased client goes with the erasure.',
  ),
  rejections: ofEnvironment('environment_id rejection_key', 'Only a hash of the ids; the oldest are deleted.'),
  approval_feeds: ofEnvironment('environment_id'),
  approvals: {
    ...ofRun('environment_id id', 'Retention keeps them for a time of their own.'),
    line: 'approval',
    exported: `id client_id client_request_id run_id? session_id? agent_id? policy_id? tool_name input_hash reason? timeout_ms#
        created_at# expires_at# status decided_at#? decision_reason? decider_kind? decider_id? decider_name? decided_via? key_family? tool_call_id? policy_version?
        records_input#? hash_scheme? input_event_id? withdrawn_at#? withdrawn_reason? ran_at#? ran_status?
        approvers#? first_approval{}? policy_versions{}? grant_id?`,
    kept: 'revision# imported_at#? last_seen_at#? held_until#?',
    computed: 'request_key tool_key agent_key policy_key run_key',
  },
  approval_grants: ofRun('environment_id id', 'With the approval that it was given with. Rights are not exported.'),
  issue_records: {
    ...ofRun('environment_id id', 'Retention keeps them for a time of their own.'),
    scanKey: { sqlite: ['seq'] },
    only: { sqlite: ['seq'] },
    line: 'issueRecord',
    exported: `id origin same_as? sdk_instance_id client_record_id record_kind detection_type run_id? session_id? event_id? agent_id
        policy_id? prompt_version_id? detected_at# seen_at# received_at# status status_at# failure? fingerprint? payload{}
        evidence{}`,
    computed: 'record_key',
  },
  issues: {
    ...ofRun('environment_id id', 'With their last fingerprint; otherwise counted again.'),
    line: 'issue',
    exported: `id title detection_type state state_at# state_by{}? ignored_until#? opened_at# first_seen# last_seen# occurrences#
        recoveries# runs# agents# regressions# last_regression_at#? assignee? merged_into?`,
  },
  issue_fingerprints: {
    ...ofRun('environment_id fingerprint', 'With their last record; otherwise counted again.'),
    line: 'issueFingerprint',
    exported: `fingerprint issue_id? home_issue_id? detection_type title facts{} first_seen#? last_seen#? occurrences# recoveries#
        runs# agents#`,
  },
  issue_affected: {
    ...ofRun('environment_id fingerprint kind subject_key', 'With the records.'),
    line: 'issueAffected',
    exported: 'fingerprint kind subject_key subject occurrences# first_seen# last_seen#',
  },
  issue_activity: {
    ...ofRun('environment_id issue_id at id', 'With the issue.'),
    line: 'issueActivity',
    exported: 'issue_id at# id kind actor{}? text? detail{}',
    kept: 'imported_at#?',
  },
  search_runs: notCopied(ofRun('environment_id run')),
  search_entries: notCopied(
    ofRun(
      'environment_id run seq',
      'In SQLite, a trigger deletes their words from search_words: only hashes, until FTS5 merges.',
    ),
  ),
  work: ofRun('environment_id kind subject_id', 'With what it names.'),
} as const satisfies Record<string, Table>

type Described = typeof DESCRIBED
export type TableName = keyof Described
export type NamedTable = Table & { name: TableName }

export const TABLES: readonly NamedTable[] = Object.entries<Table>(DESCRIBED).map(([name, table]) => {
  return { ...table, name: name as TableName }
})

export const COPIED_TABLES: readonly NamedTable[] = TABLES.filter(({ isCopied }) => isCopied)

export function scanKeyOf({ key, scanKey }: Pick<Table, 'key' | 'scanKey'>, engine: Engine): readonly string[] {
  return scanKey?.[engine] ?? key
}

type TextOf<Name extends TableName, Part extends 'line' | 'exported' | 'kept'> =
  Described[Name] extends Record<Part, infer Text extends string> ? Text : never

export type ExportedTable = { [Name in TableName]: TextOf<Name, 'line'> }[TableName]

/** A row of a table as an object, without the tenant: `created_at#` is `createdAt: number`. */
export type RowOf<Name extends TableName> = Members<TextOf<Name, 'exported'> | TextOf<Name, 'kept'>>

type Members<Text extends string> = { [Word in Split<Text> as Member<Bare<Word>>]: ValueOf<Word> }
type Split<Text extends string> = Text extends `${infer First}\n${infer Rest}`
  ? Split<First> | Split<Rest>
  : Text extends `${infer First} ${infer Rest}`
    ? Split<First> | Split<Rest>
    : Text extends ''
      ? never
      : Text
type Bare<Word extends string> = Word extends `${infer Name}${'#' | '{}' | '?'}` ? Bare<Name> : Word
type ValueOf<Word extends string> = Word extends `${infer Marked}?`
  ? ValueOf<Marked> | null
  : Word extends `${string}#`
    ? number
    : string
type Member<Column extends string> = Column extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Member<Rest>>}`
  : Column
