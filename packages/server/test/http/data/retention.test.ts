import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { PinnedRun, Retention, RetentionPreview, WorkspaceRetention } from '@tacho/contract/data/retention.ts'
import type { OperatorRun, OperatorRunPage } from '@tacho/contract/runs/operator-run.ts'
import { KEEP_ALL } from '../../../src/storage/data/retention.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const detailsOf = async (workspaceId: string, target: string) => {
  const path = `/workspaces/${workspaceId}/audit?targetId=${target}`
  const { body } = await service.operator<AuditPage>(path)
  return body.items.map(({ action, detail }) => [action, detail])
}

test('settings are changed in part, followed from the workspace, and each change is audited with both values', async () => {
  const { workspaceId, environmentId } = await service.newTenant('kept')
  const home = `/environments/${environmentId}/retention`
  // A pass may run at any time after a change.
  const shown = ({ body: { settings: of, source } }: { body: Retention }) => ({ settings: of, source })
  const read = async () => shown(await service.operator<Retention>(home))
  assert.deepEqual((await service.operator(home)).body, { settings: KEEP_ALL, source: 'none', progress: null })

  const ofWorkspace = `/workspaces/${workspaceId}/retention`
  const none = await service.operator<WorkspaceRetention>(ofWorkspace)
  assert.deepEqual(none.body, { settings: KEEP_ALL, source: 'none' })
  const all = await service.operator<WorkspaceRetention>(`${ofWorkspace}/change`, { body: { runDays: 90 } })
  assert.deepEqual(all.body, { settings: { ...KEEP_ALL, runDays: 90 }, source: 'workspace' })
  assert.deepEqual(await read(), { settings: { ...KEEP_ALL, runDays: 90 }, source: 'workspace' })

  const own = await service.operator<Retention>(`${home}/change`, {
    body: { payloadDays: 7, keepOpenIssueRuns: false },
  })
  const settings = { ...KEEP_ALL, runDays: 90, payloadDays: 7, keepOpenIssueRuns: false }
  assert.deepEqual(shown(own), { settings, source: 'environment' })
  assert.deepEqual(await read(), shown(own))
  const forever = await service.operator<Retention>(`${home}/change`, { body: { payloadDays: null } })
  assert.equal(forever.body.settings.payloadDays, null)
  const inherited = await service.operator<Retention>(`${home}/inherit`, { method: 'POST' })
  assert.equal(inherited.body.source, 'workspace')

  assert.deepEqual(await detailsOf(workspaceId, workspaceId).then((entries) => entries.slice(0, 1)), [
    ['retention.change', { runDays: { from: null, to: 90 } }],
  ])
  assert.deepEqual(await detailsOf(workspaceId, environmentId).then((entries) => entries.slice(0, 3)), [
    ['retention.inherit', { keepOpenIssueRuns: { from: false, to: true } }],
    ['retention.change', { payloadDays: { from: 7, to: null } }],
    ['retention.change', { payloadDays: { from: null, to: 7 }, keepOpenIssueRuns: { from: true, to: false } }],
  ])
})

test('changes of different settings at once all count, and each is audited with what it changed', async () => {
  const { workspaceId, environmentId } = await service.newTenant('at once')
  const changes = [{ runDays: 90 }, { payloadDays: 7 }, { issueDays: 8 }, { approvalDays: 9 }, { auditDays: 365 }]
  const wanted = { ...KEEP_ALL, ...Object.assign({}, ...changes) }
  for (const [place, target] of [
    [`/workspaces/${workspaceId}`, workspaceId],
    [`/environments/${environmentId}`, environmentId],
  ] as const) {
    await service.operator(`${place}/retention/change`, { body: KEEP_ALL })
    const answers = await Promise.all(changes.map((body) => service.operator(`${place}/retention/change`, { body })))
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.deepEqual((await service.operator<Retention>(`${place}/retention`)).body.settings, wanted)
    const details = (await detailsOf(workspaceId, target)).slice(0, changes.length).map(([, detail]) => detail)
    const each = Object.entries(wanted).filter(([name]) => name !== 'keepOpenIssueRuns')
    assert.deepEqual(
      Object.assign({}, ...details),
      Object.fromEntries(each.map(([name, to]) => [name, { from: null, to }])),
    )
  }
})

test('settings outside the limits are refused, in a change and in a preview', async () => {
  const { environmentId } = await service.newTenant('refused')
  const home = `/environments/${environmentId}/retention`
  for (const [change, at] of [
    [{ runDays: 0 }, '/runDays'],
    [{ runDays: LIMITS.retentionDays + 1 }, '/runDays'],
    [{ runDays: 1.5 }, '/runDays'],
    [{ runDays: 7, payloadDays: 8 }, '/payloadDays'],
    [{ auditDays: LIMITS.retentionAuditDaysMin - 1 }, '/auditDays'],
  ] as const) {
    const query = new URLSearchParams(Object.entries(change).map(([name, days]) => [name, String(days)]))
    for (const { status, body, text } of [
      await service.operator(`${home}/change`, { body: change }),
      await service.operator(`${home}/preview?${query.toString()}`),
    ]) {
      const [error] = (body as unknown as { errors: { path: string }[] }).errors ?? []
      assert.ok(status === 400 && error?.path.startsWith(at), `${JSON.stringify(change)}: ${text}`)
    }
  }
  const most = { runDays: LIMITS.retentionDays, payloadDays: LIMITS.retentionDays, auditDays: 30, issueDays: 1 }
  assert.equal((await service.operator(`${home}/change`, { body: most })).status, 200)
})

test('a preview counts runs without removing them, by given or current settings', async () => {
  const { environmentId } = await service.newTenant('previewed')
  const apiKey = await service.newKey({ scopes: ['events:write'], environmentId })
  const old = { runId: 'old', timestamp: Date.now() - 86_400_000 * 20 }
  const sent = await service.api('/events/batch', { headers: { 'x-api-key': apiKey }, body: [event(old)] })
  assert.equal(sent.status, 200)
  const home = `/environments/${environmentId}/retention`
  const preview = async (query: string) => (await service.operator<RetentionPreview>(`${home}/preview${query}`)).body
  // The run arrived just now, so it is not old yet.
  const counted = await preview('?runDays=7&approvalDays=7')
  assert.deepEqual(counted.settings, { ...KEEP_ALL, runDays: 7, approvalDays: 7 })
  assert.deepEqual([counted.runs.exact, counted.runs.runs], [true, 0])
  const none = await preview('')
  assert.deepEqual([none.settings, none.runs.runs], [KEEP_ALL, 0])
})

test('a run is pinned and unpinned by either of its ids, once, and its lists show it', async () => {
  const { workspaceId, environmentId } = await service.newTenant('pinned')
  const apiKey = await service.newKey({ scopes: ['events:write'], environmentId })
  await service.api('/events/batch', { headers: { 'x-api-key': apiKey }, body: [event({ runId: 'my run' })] })
  const runs = `/environments/${environmentId}/runs`
  const run = (await service.operator<OperatorRun>(`${runs}/my%20run`)).body
  assert.deepEqual([run.pinnedAt, run.payloadsRemoved], [null, 0])
  const act = (verb: string, id = 'my%20run') =>
    service.operator<PinnedRun>(`${runs}/${id}/${verb}`, { method: 'POST' })
  const pinned = (await act('pin')).body
  assert.deepEqual([pinned.id, pinned.runId, typeof pinned.pinnedAt], [run.id, 'my run', 'string'])
  assert.deepEqual((await act('pin', run.id)).body, pinned)
  const [listed] = (await service.operator<OperatorRunPage>(runs)).body.items
  assert.equal(listed?.pinnedAt, pinned.pinnedAt)
  assert.equal((await act('unpin', run.id)).body.pinnedAt, null)
  assert.equal((await act('pin', 'unknown')).status, 404)
  assert.deepEqual(await detailsOf(workspaceId, run.id), [
    ['run.unpin', { runId: 'my run' }],
    ['run.pin', { runId: 'my run' }],
  ])
})
