import { OPERATOR_ROUTES } from '@tacho/contract/operator/routes.ts'
import type {
  PinnedRun,
  Retention,
  RetentionChange,
  RetentionPreview,
  RetentionPreviewQuery,
  RetentionSettings,
} from '@tacho/contract/operator/retention.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { nullableIsoTime } from '../../domain/run.ts'
import { KEEP_ALL, SETTING_NAMES } from '../../storage/retention.ts'
import type { CountedRows, CountedRuns, RetentionProgressRow, RetentionRow, Tenant } from '../../storage/retention.ts'
import type { Deps } from '../deps.ts'
import { refuse, type Refusal } from '../reply-error.ts'
import { serveRoute } from '../serve-route.ts'
import { environmentOf, workspaceOf } from './access.ts'
import { auditOf } from './audit.ts'
import { refuseField } from '../field.ts'
import { pick, isoOf } from '../../domain/shown.ts'

const NO_RUN = refuse('not_found', 'The run does not exist')

export function retentionRoutes(app: FastifyInstance, deps: Deps): void {
  const { storage, now, work } = deps

  serveRoute(app, OPERATOR_ROUTES.readRetention, deps, async ({ request }) => {
    return toRetention(await storage.readRetention(retainedTenant(request)))
  })

  serveRoute(app, OPERATOR_ROUTES.changeRetention, deps, async ({ body, request }) => {
    const tenant = retainedTenant(request)
    const { workspaceId, environmentId } = tenant
    for (;;) {
      const before = await storage.readRetention(tenant)
      const settings = changed(before.settings, body)
      checkSettings(settings)
      const change = { before: before.settings, settings }
      const audit = [auditOf(request, now(), 'retention.change', environmentTarget(request), detailOf(change))]
      if (!(await storage.changeRetention(workspaceId, environmentId, change, now(), audit))) continue
      work.wake('retain')
      return toRetention({ ...before, settings, source: 'environment' })
    }
  })

  serveRoute(app, OPERATOR_ROUTES.inheritRetention, deps, async ({ request }) => {
    const tenant = retainedTenant(request)
    const { workspaceId, environmentId } = tenant
    for (;;) {
      const row = await storage.readRetention(tenant)
      if (row.source !== 'environment') return toRetention(row)
      const [before, settings] = [row.settings, (await storage.readWorkspaceRetention(workspaceId)) ?? KEEP_ALL]
      const detail = detailOf({ before, settings })
      const audit = [auditOf(request, now(), 'retention.inherit', environmentTarget(request), detail)]
      if (await storage.changeRetention(workspaceId, environmentId, { before, settings: null }, now(), audit)) {
        work.wake('retain')
      }
    }
  })

  serveRoute(app, OPERATOR_ROUTES.previewRetention, deps, async ({ query, request }) => {
    const tenant = retainedTenant(request)
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

  serveRoute(app, OPERATOR_ROUTES.readWorkspaceRetention, deps, async ({ request }) => {
    return ofWorkspace(await storage.readWorkspaceRetention(workspaceOf(request).id))
  })

  serveRoute(app, OPERATOR_ROUTES.changeWorkspaceRetention, deps, async ({ body, request }) => {
    const { id } = workspaceOf(request)
    const target = { kind: 'workspace', id }
    for (;;) {
      const before = (await storage.readWorkspaceRetention(id)) ?? KEEP_ALL
      const settings = changed(before, body)
      checkSettings(settings)
      const audit = [auditOf(request, now(), 'retention.change', target, detailOf({ before, settings }))]
      if (!(await storage.changeRetention(id, null, { before, settings }, now(), audit))) continue
      work.wake('retain')
      return ofWorkspace(settings)
    }
  })

  serveRoute(app, OPERATOR_ROUTES.pinRun, deps, ({ params, request }) => pin(request, params.runId, now()))
  serveRoute(app, OPERATOR_ROUTES.unpinRun, deps, ({ params, request }) => pin(request, params.runId, null))

  async function pin(request: FastifyRequest, runId: string, at: number | null): Promise<PinnedRun | Refusal> {
    const environmentId = environmentOf(request).id
    const run = await storage.findRun(environmentId, runId)
    if (run === null) return NO_RUN
    const target = { kind: 'run', id: run.id }
    const audit = [auditOf(request, now(), at === null ? 'run.unpin' : 'run.pin', target, { runId: run.runId })]
    const pinned = await storage.pinRun(environmentId, run.id, at, audit)
    if (pinned === null) return NO_RUN
    return { ...pinned, pinnedAt: nullableIsoTime(pinned.pinnedAt) }
  }
}

function retainedTenant(request: FastifyRequest): Tenant {
  const { id, workspaceId } = environmentOf(request)
  return { workspaceId, environmentId: id }
}

function environmentTarget(request: FastifyRequest) {
  return { kind: 'environment', id: environmentOf(request).id }
}

/** By name: a body can contain extra fields. */
function changed(before: RetentionSettings, change: RetentionChange): RetentionSettings {
  return Object.fromEntries(
    SETTING_NAMES.map((name) => [name, change[name] === undefined ? before[name] : change[name]]),
  ) as unknown as RetentionSettings
}

function detailOf({ before, settings }: Record<'before' | 'settings', RetentionSettings>): Record<string, unknown> {
  const differing = SETTING_NAMES.filter((name) => before[name] !== settings[name])
  return Object.fromEntries(differing.map((name) => [name, { from: before[name], to: settings[name] }]))
}

/** Null: the current settings. */
function previewed(query: RetentionPreviewQuery): RetentionSettings | null {
  const { keepOpenIssueRuns, ...days } = query
  if (SETTING_NAMES.every((name) => name === 'keepOpenIssueRuns' || days[name] === undefined)) return null
  const { runDays = null, payloadDays = null, issueDays = null, approvalDays = null, auditDays = null } = days
  const given = { runDays, payloadDays, issueDays, approvalDays, auditDays }
  return { ...given, keepOpenIssueRuns: keepOpenIssueRuns !== 'false' }
}

function checkSettings({ runDays, payloadDays }: RetentionSettings): void {
  if (runDays === null || payloadDays === null || payloadDays <= runDays) return
  throw refuseField('payloadDays', `must not be more than runDays, which is ${runDays}`)
}

function toRetention({ settings, source, progress }: RetentionRow): Retention {
  return { settings, source, progress: progress && toProgress(progress) }
}

function toProgress(row: RetentionProgressRow) {
  const times = isoOf(row, 'passStartedAt', 'passEndedAt', 'lastSliceAt', 'reachedAt')
  return { ...times, pass: row.pass, total: row.total }
}

function ofWorkspace(settings: RetentionSettings | null) {
  return settings === null
    ? { settings: KEEP_ALL, source: 'none' as const }
    : { settings, source: 'workspace' as const }
}

function toRuns(row: CountedRuns): RetentionPreview['runs'] {
  return { ...pick(row, 'exact', 'runs', 'events', 'bytes'), ...isoOf(row, 'oldest', 'newest') }
}

function toRows(row: CountedRows): RetentionPreview['issues'] {
  return { ...pick(row, 'exact', 'count'), ...isoOf(row, 'oldest') }
}
