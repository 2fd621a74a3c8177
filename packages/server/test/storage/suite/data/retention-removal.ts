/** Rows that retention removes, rows that it keeps, and events that arrive later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { SimulationResult } from '@tacho/contract/policies/simulation.ts'
import { DAY_MS } from '../../../../src/storage/engine/times.ts'
import { KEEP_ALL } from '../../../../src/storage/data/retention.ts'
import { uuidv7At } from '../../../../src/storage/engine/uuid.ts'
import { decision, request } from '../approvals/approval-sample.ts'
import { auditEntry, change, issueRecord, listAll, reviewed, newFailure } from '../issues/issue-sample.ts'
import type { NewEvent } from '../../../../src/storage/record/events.ts'
import { inputsInShort } from '../../../../src/domain/approvals/recorded-input.ts'
import type { Retaining } from './retention-sample.ts'
import { found, indexAll } from '../runs/search.ts'
import { append, batch, event, HOUR, llmCall, newId, NOON, outcome, timelineOf, sampleFailure } from '../sample.ts'

const NOTHING = { runs: 0, events: 0, payloads: 0, issues: 0, approvals: 0, auditEntries: 0 }

export function retentionRemoval({ storage, newEnvironment, changeSettings, set, ...retained }: Retaining) {
  const { recorded, runIds, removeAll, deleteAll } = retained

  test('removes runs whose last event is older, at the millisecond, with their events and nothing else', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30 })
    const { environmentId: other } = await newEnvironment()
    const cutoff = NOON - 30 * DAY_MS
    for (const [runId, time] of [
      ['gone', cutoff - 1],
      ['kept', cutoff],
    ] as const) {
      for (const each of [env, other]) {
        const call = llmCall({ totalTokens: 5 }, { runId, time })
        await storage().appendEvents(batch(each, [call, event({ runId, time })], { receivedAt: time }))
      }
    }
    // The age of a run counts from its last event.
    await recorded(env, 'long', 59)
    await recorded(env, 'long', 29)
    const usage = () => storage().readUsage(env, 0, NOON, { limit: 100, after: null })
    const before = await usage()
    await storage().startRetention(env, NOON)
    assert.equal(await removeAll(env, 'runs'), 2)
    assert.deepEqual(await runIds(env), ['kept', 'long'])
    assert.deepEqual(await runIds(other), ['gone', 'kept'])
    assert.equal((await timelineOf(storage(), env, 'kept')).length, 2)
    assert.equal((await timelineOf(storage(), env, 'long')).length, 2)
    assert.deepEqual(await usage(), before)
    const { progress } = await storage().readRetention({ workspaceId: newId(), environmentId: env })
    assert.deepEqual(progress?.pass, { ...NOTHING, runs: 1, events: 2 })
    assert.deepEqual([progress?.lastSliceAt, progress?.passEndedAt], [NOON, null])
  })

  test('an input that is recorded again, after retention removed the first, is not what a person saw', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 7 })
    const asked = { ...request(env, { runId: 'run', keyFamily: 'key-1' }), createdAt: NOON - 9 * DAY_MS }
    const { id } = (await storage().createApproval(asked)).approval ?? {}
    assert.ok(id)
    const deciding = (to: string): NewEvent => {
      const { toolName, inputHash } = asked
      const note = { approvalId: id, kind: 'input', toolName, inputHash, policyVersions: null, reason: null } as const
      const payload = JSON.stringify({ approvalId: id, toolName, inputHash, input: { to } })
      const named = { runId: 'run', eventId: 'decision', time: NOON - 9 * DAY_MS, eventType: 'POLICY_DECISION' }
      return event({ ...named, payload, approval: { ...note, status: null } })
    }
    const record = (to: string, receivedAt: number) =>
      storage().appendEvents({ ...batch(env, [deciding(to)], { receivedAt }), keyFamily: 'key-1' })
    const shown = async () => {
      const row = await storage().findApproval(env, id)
      return row && (await inputsInShort(storage(), env, [row]))[0]?.text
    }
    await record('Ada', NOON - 9 * DAY_MS)
    assert.equal(await shown(), '{"to":"Ada"}')
    await storage().decideApprovals(env, [id], decision({ now: NOON - 9 * DAY_MS + 1 }), [])
    await storage().startRetention(env, NOON)
    assert.equal(await removeAll(env, 'runs'), 1)
    assert.equal(await shown(), null)
    await record('attacker', NOON)
    assert.deepEqual([await shown(), (await storage().findApproval(env, id))?.inputEventId], [null, 'decision'])
  })

  test('counts the age from the arrival of a run whose client lies about the time', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 7 })
    // An import: events of 20 days ago that arrive today.
    await storage().appendEvents(batch(env, [event({ runId: 'imported', time: NOON - 20 * DAY_MS })]))
    await storage().startRetention(env, NOON)
    assert.equal(await removeAll(env, 'runs'), 0)
    assert.deepEqual(await runIds(env), ['imported'])
  })

  test('a large run vanishes at once, and its events are deleted in bounded slices', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30 })
    const events = Array.from({ length: 95 }, () => ({}))
    await recorded(env, 'large', 40, ...events)
    await recorded(env, 'small', 41)
    await storage().startRetention(env, NOON)
    const { runs } = await storage().listExpiredRuns(env, 'runs', NOON, null)
    const slice = { ids: runs.map(({ id }) => id), most: 30, reachedAt: NOON }
    const { runs: removedRuns, events: removedEvents, runsLeft } = await storage().removeExpiredRuns(env, NOON, slice)
    assert.deepEqual([removedRuns, removedEvents, runsLeft], [2, 30, true])
    assert.deepEqual(await runIds(env), [])
    assert.equal(await storage().findRun(env, 'large'), null)
    assert.equal(await storage().readTimeline(env, 'large', { limit: 10, pageBytes: 1_000 }), null)
    // A late event opens another run, which is not deleted.
    await recorded(env, 'large', 1)
    assert.equal(await deleteAll(env, 20), 66)
    assert.equal((await timelineOf(storage(), env, 'large')).length, 1)
    const { progress } = await storage().readRetention({ workspaceId: newId(), environmentId: env })
    assert.deepEqual(progress?.total, { ...NOTHING, runs: 2, events: 96 })
  })

  test('keeps pinned runs and, if set, runs of open issues', async () => {
    const tenant = await newEnvironment({ runDays: 30 })
    const { environmentId: env } = tenant
    for (const runId of ['pinned', 'open', 'resolved', 'gone']) await recorded(env, runId, 40)
    await reviewed(
      storage(),
      issueRecord(env, { runId: 'open', detectionType: 'open', receivedAt: NOON - 40 * DAY_MS }),
      issueRecord(env, { runId: 'resolved', detectionType: 'resolved', receivedAt: NOON - 40 * DAY_MS }),
    )
    const issues = await listAll(storage(), env)
    const resolved = issues.find(({ detectionType }) => detectionType === 'resolved')
    await storage().changeIssueState({ environmentId: env, id: resolved?.id ?? '' }, 'RESOLVED', change(), [])
    const pinned = await storage().pinRun(env, 'pinned', NOON - 5, [auditEntry(env, 'run.pin')])
    assert.equal(pinned?.pinnedAt, NOON - 5)
    // Pinning a run again keeps the time of the first pin.
    assert.equal((await storage().pinRun(env, pinned?.id ?? '', NOON, []))?.pinnedAt, NOON - 5)
    assert.equal((await storage().findRun(env, 'pinned'))?.pinnedAt, NOON - 5)
    assert.equal(await storage().pinRun(env, 'unknown', NOON, []), null)
    assert.equal(await storage().pinRun(newId(), 'pinned', NOON, []), null)
    await storage().startRetention(env, NOON)
    await removeAll(env, 'runs')
    assert.deepEqual(await runIds(env), ['open', 'pinned'])
    await set(tenant, { runDays: 30, keepOpenIssueRuns: false })
    await storage().pinRun(env, 'pinned', null, [])
    await removeAll(env, 'runs')
    assert.deepEqual(await runIds(env), [])
  })

  test('an open issue keeps its newest runs, and only the issues seen last keep any', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30 })
    const [runs, issues] = [LIMITS.keptRunsOfIssue, LIMITS.issuesWithKeptRuns]
    const time = NOON - 40 * DAY_MS
    const record = (names: string[]) =>
      storage().appendEvents(
        batch(
          env,
          names.map((runId) => event({ runId, time })),
          { receivedAt: time },
        ),
      )
    const detected = (runId: string, detectionType: string, later: number) =>
      issueRecord(env, { runId, detectionType, detectedAt: time + later, receivedAt: time + later })
    const ofOne = Array.from({ length: runs + 3 }, (_, n) => `run ${String(n).padStart(4, '0')}`)
    await record(ofOne)
    const [first = '', ...later] = ofOne
    const records = ofOne.map((runId, n) => detected(runId, 'many', n))
    // A new detection in the oldest run makes it the newest run of the issue.
    await reviewed(storage(), ...records, detected(first, 'many', 5_000))
    await storage().startRetention(env, NOON)
    await removeAll(env, 'runs')
    assert.deepEqual(await runIds(env), [first, ...later.slice(-(runs - 1))])

    await record(['busy'])
    const seenLater = async (count: number): Promise<number> => {
      if (count > 100) return (await seenLater(100)) + (await seenLater(count - 100))
      const failures = Array.from({ length: count }, () => {
        const { decision, ...failure } = newFailure({ eventId: newId(), time: time + 10_000 })
        return { ...failure, decision: { ...decision, fingerprint: `v3:${newId()}` } }
      })
      // Two hours later, because an environment can open only few issues in an hour.
      return storage().recordFailures(env, 'busy', failures, NOON + 2 * HOUR)
    }
    assert.equal(await seenLater(issues - 1), issues - 1)
    await removeAll(env, 'runs')
    assert.equal((await runIds(env)).length, runs + 1)
    await seenLater(1)
    await removeAll(env, 'runs')
    assert.deepEqual(await runIds(env), ['busy'])
  })

  test('checks again what a slice removes: settings, pins and events that came since', async () => {
    const tenant = await newEnvironment({ runDays: 30 })
    const { environmentId: env } = tenant
    for (const runId of ['pinned', 'alive', 'old']) await recorded(env, runId, 40)
    await storage().startRetention(env, NOON)
    const found = await storage().listExpiredRuns(env, 'runs', NOON, null)
    assert.equal(found.runs.length, 3)
    await storage().pinRun(env, 'pinned', NOON, [])
    await recorded(env, 'alive', 1)
    const slice = { ids: found.runs.map(({ id }) => id), most: 100, reachedAt: NOON }
    await changeSettings(tenant, KEEP_ALL)
    assert.equal((await storage().removeExpiredRuns(env, NOON, slice)).runs, 0)
    await set(tenant, { runDays: 30 })
    assert.equal((await storage().removeExpiredRuns(env, NOON, slice)).runs, 1)
    assert.deepEqual(await runIds(env), ['alive', 'pinned'])
  })

  test('takes what a run did for a version of a prompt, so results count the runs that stay', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30 })
    const promptUse = { versionId: newId(), problem: null }
    for (const runId of ['pinned', 'old']) await recorded(env, runId, 40, { promptUse })
    await storage().pinRun(env, 'pinned', NOON, [])
    await storage().startRetention(env, NOON)
    await removeAll(env, 'runs')
    const [newest] = await storage().readVersionResults(env, [promptUse.versionId], 1)
    assert.equal(newest?.runs, 1)
  })

  test('takes simulations that quote a run, and no others', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30 })
    await recorded(env, 'old', 40)
    await recorded(env, 'young', 20)
    const quoting = await Promise.all(['old', 'young'].map((runId) => quotedBy(env, runId)))
    await storage().startRetention(env, NOON)
    await removeAll(env, 'runs')
    const left = await Promise.all(quoting.map((id) => storage().findSimulation(env, id)))
    assert.deepEqual(
      left.map((simulation) => simulation?.status ?? null),
      [null, 'DONE'],
    )
  })

  async function quotedBy(env: string, runId: string): Promise<string> {
    const { id } = (await storage().findRun(env, runId))!
    const policy = {
      condition: 'true',
      severity: 'LOW' as const,
      action: 'WARN' as const,
      onError: null,
      toolLabels: null,
      flow: null,
      days: 7,
    }
    const row = { id: newId(), environmentId: env, ...policy, createdAt: NOON, createdBy: 'ada' }
    await storage().createSimulation(row, { waiting: 9, kept: 9 }, [])
    const result = { hitRuns: [{ id, runId }] } as SimulationResult
    await storage().endSimulation(env, row.id, { at: NOON, status: 'DONE', scanned: 1, result })
    return row.id
  }

  test('an event of a removed run opens a new run', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 7 })
    const late = event({ runId: 'late', time: NOON - 10 * DAY_MS })
    const closing = outcome('COMPLETED', { runId: 'late', time: NOON - 10 * DAY_MS })
    await storage().appendEvents(batch(env, [late, closing], { receivedAt: NOON - 10 * DAY_MS }))
    const first = await storage().findRun(env, 'late')
    await storage().startRetention(env, NOON)
    await removeAll(env, 'runs')
    assert.equal(await storage().findRun(env, 'late'), null)
    assert.deepEqual(await storage().appendEvents(batch(env, [late])), ['stored'])
    const second = await storage().findRun(env, 'late')
    assert.deepEqual([second?.eventCount, second?.status, second?.receivedAt], [1, 'RUNNING', NOON])
    assert.notEqual(second?.id, first?.id)
    assert.equal((await timelineOf(storage(), env, 'late')).length, 1)
    // An event that is too old to be stored is only compared with stored ones. This one was removed.
    assert.deepEqual(await append(storage(), env, { ...closing, onlyIfStored: true }), ['absent'])
  })

  test('removes payloads earlier than their runs, and those of late events too', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30, payloadDays: 7 })
    const payload = '{"text":"secret"}'
    await recorded(env, 'bare', 10, { payload, failure: sampleFailure() }, { payload }, { payload: '{}' })
    await recorded(env, 'whole', 6, { payload })
    await storage().startRetention(env, NOON)
    const run = await storage().findRun(env, 'bare')
    assert.equal(run?.payloadsRemoved, 0)
    assert.equal(await removeAll(env, 'payloads', 1), 2)
    const rows = await timelineOf(storage(), env, 'bare')
    // A payload that was removed has no bytes. One that was sent as {} has two.
    assert.deepEqual(
      rows.map((row) => [row.payload, row.payloadBytes]),
      [
        ['{}', 0],
        ['{}', 0],
        ['{}', 2],
      ],
    )
    assert.equal(run?.failureMessage, 'no answer after 5 s')
    assert.deepEqual(await storage().findRun(env, 'bare'), {
      ...run,
      payloadsRemoved: 3,
      failureMessage: null,
      said: null,
    })
    assert.equal((await timelineOf(storage(), env, 'whole'))[0]?.payload, payload)
    assert.deepEqual((await storage().listExpiredRuns(env, 'payloads', NOON, null)).runs, [])
    // A late event with an old time does not make the run younger.
    await recorded(env, 'bare', 9, { payload })
    assert.equal(await removeAll(env, 'payloads'), 1)
    const { payloadsRemoved, failure, failureMessage } = (await storage().findRun(env, 'bare'))!
    assert.deepEqual([payloadsRemoved, failure, failureMessage], [4, run?.failure, null])
  })

  test('a label is found after the payload of its event was removed, and the payload is not', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30, payloadDays: 7 })
    assert.equal(await storage().switchSearch(env, true, NOON, []), 'switched')
    const payload = '{"text":"secret"}'
    const events = ['one', 'two', 'three'].map((eventId) => ({ eventId, label: 'Refund order', payload }))
    await recorded(env, 'bare', 10, ...events)
    await indexAll(storage(), env)
    assert.deepEqual((await found(storage(), env, 'refund secret')).toSorted(), ['one', 'three', 'two'])
    await storage().startRetention(env, NOON)
    assert.equal(await removeAll(env, 'payloads', 2), 3)
    assert.deepEqual(await found(storage(), env, 'secret'), [])
    await indexAll(storage(), env)
    assert.deepEqual((await found(storage(), env, 'refund')).toSorted(), ['one', 'three', 'two'])
    assert.deepEqual(await found(storage(), env, 'secret'), [])
    // Each row is removed once, also from the search index.
    assert.equal((await storage().readSearchSettings(env))?.waitingRuns, 0)
  })

  test('a run that gets an event between two slices is found again, once', async () => {
    const { environmentId: env } = await newEnvironment({ runDays: 30, payloadDays: 7 })
    assert.equal(await storage().switchSearch(env, true, NOON, []), 'switched')
    const payload = '{"text":"secret"}'
    const events = ['one', 'two', 'three'].map((eventId) => ({ eventId, label: 'Refund order', payload }))
    await recorded(env, 'grows', 10, ...events)
    await indexAll(storage(), env)
    await storage().startRetention(env, NOON)
    const [run] = (await storage().listExpiredRuns(env, 'payloads', NOON, null)).runs
    const slice = { ids: [run!.id], most: 2, reachedAt: NOON }
    assert.deepEqual((await storage().removeExpiredPayloads(env, NOON, slice)).rest, [run!.id])
    await storage().appendEvents(
      batch(env, [event({ runId: 'grows', eventId: 'four', label: 'Refund order', payload })]),
    )
    await indexAll(storage(), env)
    assert.deepEqual(await storage().removeExpiredPayloads(env, NOON, slice), {
      events: 0,
      rest: [run!.id],
      changedRunIds: [],
    })
    assert.deepEqual((await storage().removeExpiredPayloads(env, NOON, slice)).rest, [])
    await indexAll(storage(), env)
    assert.deepEqual((await found(storage(), env, 'refund')).toSorted(), ['four', 'one', 'three', 'two'])
    assert.equal((await found(storage(), env, 'secret')).length, 2)
  })

  test('removes resolved issues, ended approvals and old entries of the audit log', async () => {
    const tenant = await newEnvironment({ issueDays: 30, approvalDays: 30, auditDays: 30 })
    const { environmentId: env, workspaceId } = tenant
    const old = NOON - 31 * DAY_MS
    const fresh = NOON - 29 * DAY_MS
    for (const [at, detectionType] of [
      [old, 'open'],
      [old, 'done'],
      [fresh, 'seen'],
    ] as const) {
      for (let count = 0; count < 3; count++) {
        await reviewed(storage(), issueRecord(env, { detectionType, detectedAt: at, receivedAt: at, runId: newId() }))
      }
    }
    for (const { id, detectionType, lastSeen } of await listAll(storage(), env)) {
      const at = { ...change(), at: lastSeen + 1 }
      if (detectionType === 'open') continue
      await storage().changeIssueState({ environmentId: env, id }, 'RESOLVED', at, [])
    }
    for (const createdAt of [old, fresh]) {
      const asked = request(env, { createdAt, expiresAt: createdAt + HOUR })
      await storage().createApproval(asked)
      await storage().decideApprovals(env, [asked.id], decision({ now: createdAt + 1 }), [])
      const pending = request(env, { createdAt, expiresAt: NOON + HOUR })
      await storage().createApproval(pending)
    }
    const entries = [old, fresh].map((at) => ({ ...auditEntry(env, 'test.act'), workspaceId, at }))
    const ids = entries.map(({ at }, index) => uuidv7At(at).replace(/0{12}$/, newId().slice(-11) + index))
    await storage().appendAudit(entries.map((entry, index) => ({ ...entry, id: ids[index] ?? '' })))

    const settings = (await storage().readRetention(tenant)).settings
    const preview = await storage().previewRetention(tenant, settings, NOON)
    const one = { exact: true, count: 1 }
    assert.deepEqual(preview.issues, { ...one, oldest: old })
    assert.deepEqual(preview.approvals, { ...one, oldest: old })
    assert.deepEqual(preview.auditEntries, { ...one, oldest: old })

    await storage().startRetention(env, NOON)
    for (const what of ['issues', 'approvals', 'auditEntries'] as const) {
      while ((await storage().removeExpiredRows(env, what, NOON, 2)) > 0);
    }
    const left = (await listAll(storage(), env)).map(({ detectionType }) => detectionType).toSorted()
    assert.deepEqual(left, ['open', 'seen'])
    const records = await storage().listIssueRecords(env, {}, { limit: 100, after: null })
    assert.equal(records.rows.length, 6)
    const approvals = await storage().listApprovals(env, {}, { limit: 100, after: null })
    assert.deepEqual(
      approvals.rows.map(({ createdAt, status }) => `${createdAt === old ? 'old' : 'fresh'} ${status}`).toSorted(),
      ['fresh APPROVED', 'fresh PENDING', 'old PENDING'],
    )
    const audit = await storage().listAudit(workspaceId, { limit: 100, after: null })
    assert.deepEqual(
      audit.rows.map(({ at }) => at),
      [fresh],
    )
    const { progress } = await storage().readRetention(tenant)
    assert.deepEqual(progress?.total, { ...NOTHING, issues: 1, approvals: 1, auditEntries: 1 })
    // The same facts open a new issue.
    await reviewed(storage(), issueRecord(env, { detectionType: 'done', runId: newId() }))
    assert.equal((await listAll(storage(), env)).length, 3)
  })
}
