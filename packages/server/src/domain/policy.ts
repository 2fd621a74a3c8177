import type { Policy, PolicyVersion } from '@tacho/contract/operator/policy.ts'
import type { PolicyRow, PolicyVersionRow } from '../storage/policies.ts'
import { isoTime, nullableIsoTime } from './run.ts'

export function toPolicy({ id, workspaceId, createdAt, archivedAt, newest }: PolicyRow): Policy {
  const times = { createdAt: isoTime(createdAt), archivedAt: nullableIsoTime(archivedAt) }
  return { policyId: id, workspaceId, ...times, newest: toPolicyVersion(newest) }
}

export function toPolicyVersion(row: PolicyVersionRow): PolicyVersion {
  const { policyId, number, name, description, condition, severity, action, author, note } = row
  const times = { createdAt: isoTime(row.createdAt), importedAt: nullableIsoTime(row.importedAt) }
  const written = { version: String(number), author, note, ...times }
  return { policyId, ...written, name, description, condition, severity, action }
}
