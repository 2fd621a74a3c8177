/** Which tables an export has, and which of their columns. */
import type { ExportedTable } from './exports.ts'

export interface TableParts {
  name: string
  /** What selects the rows of one export. */
  of: 'environment' | 'workspace'
  /** Unique within the environment, and never null. Rows are read in this order. */
  key: readonly string[]
  columns: readonly string[]
  /** Columns with whole numbers. The others are texts. */
  numbers: readonly string[]
  /** Columns that can be null. */
  nullable: readonly string[]
  /** Columns with JSON. */
  json: readonly string[]
}

/** The columns of a table in words: a number ends with #, one that can be null with ?. The first `keys` are its key. */
function table(name: string, of: TableParts['of'], keys: number, columns: string, json = ''): TableParts {
  const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '')
  const named = (mark: string) =>
    words(columns)
      .filter((word) => word.includes(mark))
      .map(bare)
  const all = words(columns).map(bare)
  return {
    name,
    of,
    key: all.slice(0, keys),
    columns: all,
    numbers: named('#'),
    nullable: named('?'),
    json: words(json),
  }
}

const bare = (word: string): string => word.replace(/[#?]+$/, '')

export const EXPORTED_TABLES: Readonly<Record<ExportedTable, TableParts>> = {
  prompt: table('prompts', 'workspace', 1, 'id name created_at# newest# archived_at#?'),
  promptVersion: table(
    'prompt_versions',
    'workspace',
    2,
    'prompt_id number# id author created_at# note? content_hash content_bytes# content',
  ),
  policy: table('policies', 'workspace', 1, 'id created_at# newest# archived_at#?'),
  policyVersion: table(
    'policy_versions',
    'workspace',
    2,
    'policy_id number# name description? condition severity action author created_at# note?',
  ),
  deployment: table('deployments', 'environment', 2, 'kind item_id version# publication# deployed_at# deployed_by'),
  deploymentChange: table(
    'deployment_changes',
    'environment',
    3,
    `publication# kind item_id action from_version#? to_version#? restores#? at# by_name note? source_environment_id? revision`,
  ),
  runView: table('run_views', 'environment', 1, 'id name query last_hours#? columns created_at#', 'query columns'),
  agent: table('agents', 'environment', 1, 'id external_id? name name_time# display_name? archived_at#?'),
  model: table('models', 'environment', 1, 'model_key model'),
  approval: table(
    'approvals',
    'environment',
    1,
    `id client_id client_request_id run_id? session_id? agent_id? policy_id? tool_name input_hash reason? timeout_ms#
      created_at# expires_at# status decided_at#? decision_reason? decider_kind? decider_id? decider_name?`,
  ),
  issueRecord: table(
    'issue_records',
    'environment',
    1,
    `id origin same_as? sdk_instance_id client_record_id record_kind detection_type run_id? session_id? event_id? agent_id policy_id?
      prompt_version_id? detected_at# seen_at# received_at# status status_at# failure? fingerprint? payload evidence`,
    'payload evidence',
  ),
  issue: table(
    'issues',
    'environment',
    1,
    `id title detection_type state state_at# state_by? ignored_until#? opened_at# first_seen# last_seen# occurrences#
      recoveries# runs# agents# regressions# last_regression_at#? assignee? merged_into?`,
    'state_by',
  ),
  issueFingerprint: table(
    'issue_fingerprints',
    'environment',
    1,
    `fingerprint issue_id? home_issue_id? detection_type title facts first_seen#? last_seen#? occurrences# recoveries# runs#
      agents#`,
    'facts',
  ),
  issueAffected: table(
    'issue_affected',
    'environment',
    3,
    'fingerprint kind subject_key subject occurrences# first_seen# last_seen#',
  ),
  issueActivity: table('issue_activity', 'environment', 3, 'issue_id at# id kind actor? text? detail', 'actor detail'),
}

/** `created_at` is `createdAt` in an export. */
export const memberOf = (column: string): string =>
  column.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
