/**
 * A search for issues. The words are compared here: SQLite folds the case of ASCII alone, and facts are JSON, whose names are no
 * words of the issue. Messages have `…` for what differs from run to run: `no order a-…` is found by `A-17`.
 */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { IssueState } from '@tacho/contract/issues/issue.ts'
import { allIn } from '../engine/rows.ts'
import type { Sql } from '../engine/sql.ts'

/** Ids of the issues that name every word, among those last seen. */
export async function issuesNaming(
  sql: Sql,
  environmentId: string,
  state: IssueState | undefined,
  search: string,
): Promise<string[]> {
  const newest = `SELECT id, title FROM issues WHERE environment_id = :env AND merged_into IS NULL
    ${state === undefined ? '' : 'AND state = :state'} ORDER BY last_seen DESC, id DESC LIMIT ${LIMITS.searchedIssues}`
  const issues = await sql.all<{ id: string; title: string }>(newest, { env: environmentId, state })
  const of = { env: environmentId, ids: issues.map(({ id }) => id) }
  const groups = await allIn<{ id: string; facts: string }>(
    sql,
    'SELECT issue_id AS id, facts FROM issue_fingerprints WHERE environment_id = :env AND issue_id IN (:ids)',
    of,
  )
  const agents = await allIn<{ id: string; subject: string; name: string | null }>(
    sql,
    `SELECT f.issue_id AS id, a.subject, COALESCE(g.display_name, g.name) AS name FROM issue_fingerprints f
      JOIN issue_affected a ON a.environment_id = f.environment_id AND a.fingerprint = f.fingerprint AND a.kind = 'agent'
      LEFT JOIN agents g ON g.environment_id = a.environment_id AND g.agent_key = a.subject_key
      WHERE f.environment_id = :env AND f.issue_id IN (:ids)`,
    of,
  )
  const texts = new Map(issues.map(({ id, title }) => [id, [title]]))
  for (const { id, facts } of groups) texts.get(id)?.push(...Object.values<string | string[]>(JSON.parse(facts)).flat())
  for (const { id, subject, name } of agents) texts.get(id)?.push(subject, name ?? '')
  const issueTexts = [...texts].map(([id, named]) => ({ id, text: named.join('\n').toLowerCase() }))
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .map((word) => {
      // An id that no issue names is one that their messages leave out.
      const isNamed = issueTexts.some(({ text }) => text.includes(word))
      return isNamed ? word : word.replace(/\d.*/, '…')
    })
  return issueTexts.filter(({ text }) => words.every((word) => text.includes(word))).map(({ id }) => id)
}
