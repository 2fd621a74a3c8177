/** With long texts, a page of any list ends at its byte limit, and the next page continues there. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { Page } from '../../../../src/storage/engine/page.ts'
import { ask, BEGINNING } from '../approvals/approval-sample.ts'
import { newHome, newPolicy, policyVersion } from '../policies/configuration-sample.ts'
import { auditEntry, change, issueRecord, reviewed } from '../issues/issue-sample.ts'
import { ownStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const COUNT = 20
/** Enough rows to exceed a page. */
const LONG = 'é'.repeat(Math.ceil(LIMITS.listBytes / COUNT / 2) + 1_000)
const limit = 100

/** Reads all pages of the list; returns the size of each page. */
async function walk<Row extends object>(read: (after: Row | null) => Promise<Page<Row>>): Promise<number[]> {
  const sizes: number[] = []
  for (let after: Row | null = null; ;) {
    const { rows, more }: Page<Row> = await read(after)
    const bytes = Buffer.byteLength(JSON.stringify(rows.slice(0, -1)))
    assert.ok(bytes <= LIMITS.listBytes, `${bytes} bytes before the last row`)
    sizes.push(rows.length)
    after = rows.at(-1) ?? null
    if (!more || after === null) return sizes
  }
}

function assertCut(sizes: number[], count = COUNT): void {
  assert.ok(sizes.length > 1, `${sizes.join()} rows on pages`)
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    count,
  )
}

export function listBytesSuite(open: OpenStorage) {
  describe('lists with long texts end at the byte limit of a page', () => {
    const storage = ownStorage(open)
    const each = (work: (n: number) => Promise<unknown>) =>
      Array.from({ length: COUNT }).reduce<Promise<unknown>>(
        (before, _, n) => before.then(() => work(n)),
        Promise.resolve(),
      )

    test('approvals, those of a run, and their changes', async () => {
      const env = newId()
      await each((n) => ask(storage(), env, { reason: LONG, runId: 'run', createdAt: NOON + n }))
      assertCut(
        await walk<{ createdAt: number; id: string }>((last) =>
          storage().listApprovals(env, {}, { limit, after: last && { time: last.createdAt, id: last.id } }),
        ),
      )
      assertCut(
        await walk<{ revision: number; id: string }>((last) =>
          storage().listChangedApprovals(env, last ?? BEGINNING, limit),
        ),
      )
      const ofRun = await storage().listApprovalsOfRun(env, 'run', limit)
      assert.ok(ofRun.more && ofRun.rows.length < COUNT)
    })

    test('issue records, and the occurrences and activity of an issue', async () => {
      const env = newId()
      const records = Array.from({ length: COUNT }, () => issueRecord(env, { sessionId: LONG }))
      const { opened } = await reviewed(storage(), ...records)
      const id = opened[0] ?? ''
      assertCut(
        await walk<{ id: string }>((last) => storage().listIssueRecords(env, {}, { limit, after: last?.id ?? null })),
      )
      assertCut(
        await walk<{ seenAt: number; id: string }>((last) =>
          storage().listIssueOccurrences(env, id, 'DETECTION', {
            limit,
            after: last && { at: last.seenAt, key: last.id },
          }),
        ),
      )
      const before = (await storage().listIssueActivity(env, id, { limit, after: null })).rows.length
      await each((n) => storage().commentIssue({ environmentId: env, id }, LONG, change(NOON + 20_000 + n), []))
      assertCut(
        await walk<{ at: number; id: string }>((last) =>
          storage().listIssueActivity(env, id, { limit, after: last && { at: last.at, key: last.id } }),
        ),
        COUNT + before,
      )
    })

    test('policies and their versions', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPolicy(storage(), workspaceId)
      await each((n) =>
        storage().createPolicyVersion(workspaceId, id, policyVersion({ description: `${n} ${LONG}` }), null, []),
      )
      await each((n) =>
        storage().createPolicy(
          { id: `policy-${n}`, workspaceId, createdAt: NOON },
          policyVersion({ description: LONG }),
          [],
        ),
      )
      assertCut(
        await walk<{ number: number }>((last) =>
          storage().listPolicyVersions(workspaceId, id, { limit, after: last?.number ?? null }),
        ),
        COUNT + 1,
      )
      assertCut(
        await walk<{ id: string }>((last) => storage().listPolicies(workspaceId, { limit, after: last?.id ?? null })),
        COUNT + 1,
      )
    })

    test('audit entries', async () => {
      const workspaceId = newId()
      await each(() =>
        storage().appendAudit([{ ...auditEntry(newId(), 'test.act'), workspaceId, detail: JSON.stringify({ LONG }) }]),
      )
      assertCut(
        await walk<{ id: string }>((last) => storage().listAudit(workspaceId, { limit, after: last?.id ?? null })),
      )
    })

    test('simulations', async () => {
      const { development } = await newHome(storage())
      const bounds = { waiting: COUNT, kept: COUNT }
      const row = {
        environmentId: development,
        condition: LONG,
        severity: 'HIGH',
        action: 'BLOCK',
        onError: null,
        toolLabels: null,
        flow: null,
      } as const
      await each((n) =>
        storage().createSimulation(
          { ...row, id: change().id, days: 1, createdAt: NOON + n, createdBy: 'ada' },
          bounds,
          [],
        ),
      )
      assertCut(
        await walk<{ id: string }>((last) =>
          storage().listSimulations(development, { limit, after: last?.id ?? null }),
        ),
      )
    })
  })
}
