import type {
  Retention,
  RetentionChange,
  RetentionPreview,
  RetentionPreviewQuery,
  RetentionSettings,
  WorkspaceRetention,
} from '@tacho/contract/data/retention.ts'
import { isoTime } from '../../storage/engine/times.ts'
import {
  KEEP_ALL,
  SETTING_NAMES,
  type CountedRows,
  type CountedRuns,
  type ReadSettings,
  type RetentionProgressRow,
  type RetentionRow,
} from '../../storage/data/retention.ts'
import { foundOr } from '../web/reply-error.ts'
import { NO_RUN } from '../runs/runs.ts'
import { refuseField } from '../web/field.ts'
import { pick, isoOf } from '../../domain/web/shown.ts'
import type { OperatorDeps, OperatorRequestOf } from '../web/operator-serve.ts'

export function retentionRoutes({ serve, storage, now, work }: OperatorDeps): void {
  serve('readRetention', async ({ environment: { id: environmentId, workspaceId } }) => {
    return toRetention(await storage.readRetention({ workspaceId, environmentId }))
  })

  serve('changeRetention', async ({ body, environment: { id: environmentId, workspaceId }, at, audit }) => {
    for (;;) {
      const before = await storage.readRetention({ workspaceId, environmentId })
      const settings = changed(before.settings, body)
      checkSettings(settings)
      const change = { before: before.settings, settings }
      const entries = audit(environmentId, detailOf(change))
      if (!(await storage.changeRetention(workspaceId, environmentId, change, at, entries))) continue
      work.wake('retain')
      return toRetention({ progress: before.progress, settings, source: 'environment' })
    }
  })

  serve('inheritRetention', async ({ environment: { id: environmentId, workspaceId }, at, audit }) => {
    for (;;) {
      const row = await storage.readRetention({ workspaceId, environmentId })
      if (row.source !== 'environment') return toRetention(row)
      const [before, settings] = [
        row.settings,
        (await storage.readWorkspaceRetention(workspaceId))?.settings ?? KEEP_ALL,
      ]
      const entries = audit(environmentId, detailOf({ before, settings }))
      if (await storage.changeRetention(workspaceId, environmentId, { before, settings: null }, at, entries)) {
        work.wake('retain')
      }
    }
  })

  serve('previewRetention', async ({ query, environment: { id: environmentId, workspaceId } }) => {
    const tenant = { workspaceId, environmentId }
    const settings = previewed(query) ?? (await storage.readRetention(tenant)).settings
    checkSettings(settings)
    const counted = await storage.previewRetention(tenant, settings, now())
    const preview: RetentionPreview = {
      settings,
      runs: toRuns(counted.runs),
      payloads: toRuns(counted.payloads),
      issues: toRows(counted.issues),
      approvals: toRows(counted.approvals),
      auditEntries: toRows(counted.auditEntries),
    }
    return preview
  })

  serve('readWorkspaceRetention', async ({ workspace }) => {
    return ofWorkspace(await storage.readWorkspaceRetention(workspace.id))
  })

  serve('changeWorkspaceRetention', async ({ body, workspace: { id }, at, audit }) => {
    for (;;) {
      const before = (await storage.readWorkspaceRetention(id))?.settings ?? KEEP_ALL
      const settings = changed(before, body)
      checkSettings(settings)
      const entries = audit(id, detailOf({ before, settings }))
      if (!(await storage.changeRetention(id, null, { before, settings }, at, entries))) continue
      work.wake('retain')
      return ofWorkspace({ settings })
    }
  })

  serve('pinRun', (asked) => pin(asked, asked.at))
  serve('unpinRun', (asked) => pin(asked, null))

  async function pin({ run: { id, runId }, environment, audit }: OperatorRequestOf<'pinRun'>, at: number | null) {
    const pinned = foundOr(await storage.pinRun(environment.id, id, at, audit(id, { runId })), NO_RUN)
    return { ...pinned, pinnedAt: isoTime(pinned.pinnedAt) }
  }
}

function changed(before: RetentionSettings, change: RetentionChange): RetentionSettings {
  return Object.fromEntries(
    SETTING_NAMES.map((name) => [name, change[name] === undefined ? before[name] : change[name]]),
  ) as unknown as RetentionSettings
}

function detailOf({ before, settings }: Record<'before' | 'settings', RetentionSettings>): Record<string, unknown> {
  const differing = SETTING_NAMES.filter((name) => before[name] !== settings[name])
  return Object.fromEntries(differing.map((name) => [name, { from: before[name], to: settings[name] }]))
}

function previewed(query: RetentionPreviewQuery): RetentionSettings | null {
  const { keepOpenIssueRuns, ...days } = query
  if (SETTING_NAMES.every((name) => name === 'keepOpenIssueRuns' || days[name] === undefined)) return null
  const { runDays = null, payloadDays = null, issueDays = null, approvalDays = null, auditDays = null } = days
  const dayLimits = { runDays, payloadDays, issueDays, approvalDays, auditDays }
  return { ...dayLimits, keepOpenIssueRuns: keepOpenIssueRuns !== 'false' }
}

function checkSettings({ runDays, payloadDays }: RetentionSettings): void {
  if (runDays === null || payloadDays === null || payloadDays <= runDays) return
  throw refuseField('payloadDays', `must not be more than runDays, which is ${runDays}`)
}

function toRetention({ progress, ...row }: RetentionRow): Retention {
  return { ...row, progress: progress && toProgress(progress) }
}

function toProgress(row: RetentionProgressRow) {
  const times = isoOf(row, 'passStartedAt', 'passEndedAt', 'lastSliceAt', 'reachedAt')
  return { ...times, pass: row.pass, total: row.total }
}

function ofWorkspace(read: ReadSettings | null): WorkspaceRetention {
  return read === null ? { settings: KEEP_ALL, source: 'none' } : { ...read, source: 'workspace' }
}

function toRuns(row: CountedRuns): RetentionPreview['runs'] {
  return { ...pick(row, 'exact', 'runs', 'events', 'bytes'), ...isoOf(row, 'oldest', 'newest') }
}

function toRows(row: CountedRows): RetentionPreview['issues'] {
  return { ...pick(row, 'exact', 'count'), ...isoOf(row, 'oldest') }
}
