/**
 * Bounds the issues that failures open, however their messages, classes and tools vary. A failure joins the issue of
 * its facts while they may open one, else that of its place, else that of its kind. Nodes that decide at once may open
 * a few more.
 */
import type { FailureGroup, NewFailure } from '../../issues/failures.ts'
import { uuidv7At } from '../../engine/uuid.ts'
import { countOf, type Sql } from '../engine/sql.ts'

/** Different messages of one place that have issues of their own: those seen in this time. */
const MESSAGES = 50
const MESSAGES_MS = 7 * 86_400_000
/** Issues of an environment that are opened in this time, also by reports. */
const OPENED = 200
const OPENED_MS = 3_600_000

type Grouped = Pick<NewFailure, 'decision' | 'broader'>

export function failureGroups(sql: Sql, environmentId: string, now: number) {
  const added = new Set<string>()
  let opened: number | undefined

  async function isKnown({ fingerprint }: FailureGroup): Promise<boolean> {
    if (added.has(fingerprint)) return true
    const text = 'SELECT 1 FROM issue_fingerprints WHERE environment_id = :env AND fingerprint = :fingerprint'
    return (await sql.get(text, { env: environmentId, fingerprint })) !== null
  }

  async function hasRoom(): Promise<boolean> {
    const text = `SELECT COUNT(*) AS count FROM
      (SELECT 1 FROM issues WHERE environment_id = :env AND id >= :first LIMIT ${OPENED}) AS opened`
    opened ??= await countOf(sql, text, { env: environmentId, first: uuidv7At(now - OPENED_MS) })
    return opened + added.size < OPENED
  }

  async function hasRoomIn(family: string): Promise<boolean> {
    const text = `SELECT COUNT(*) AS count FROM (SELECT 1 FROM issue_fingerprints
      WHERE environment_id = :env AND fingerprint >= :family AND fingerprint < :end AND last_seen > :since LIMIT ${MESSAGES}) AS seen`
    const range = { env: environmentId, family, end: `${family}~`, since: now - MESSAGES_MS }
    const seen = await countOf(sql, text, range)
    return seen + [...added].filter((fingerprint) => fingerprint.startsWith(family)).length < MESSAGES
  }

  async function groupOf({ decision, broader: { family, place, kind } }: Grouped): Promise<FailureGroup> {
    if (await isKnown(decision)) return decision
    if (await hasRoom()) return (await hasRoomIn(family)) ? decision : place
    return (await isKnown(place)) ? place : kind
  }

  return async (failure: Grouped): Promise<FailureGroup> => {
    const group = await groupOf(failure)
    if (!(await isKnown(group))) added.add(group.fingerprint)
    return group
  }
}
