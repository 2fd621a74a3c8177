import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Approval, ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import { approvalCalls } from '../../setup/approval-service.ts'
import { startService } from '../../setup/service.ts'

const CLIENTS = 100
const REQUESTS = 40
const STEPS = 12

interface Seen {
  client: number
  approval: Approval
}

test('a hundred clients create, decide, expire and read the same approvals: each has one outcome', async () => {
  // An unreliable clock: each reading is up to two seconds off, so deadlines pass and come again.
  const service = await startService({}, () => Date.now() + Math.round((Math.random() - 0.5) * 4_000))
  const calls = approvalCalls(service)
  const seen = new Map<string, Seen[]>()
  const decided: Approval[] = []
  const note = (client: number, approval: Approval) => {
    seen.set(approval.id, [...(seen.get(approval.id) ?? []), { client, approval }])
  }

  async function client(number: number): Promise<void> {
    for (let step = 0; step < STEPS; step++) {
      const clientRequestId = `request ${Math.floor(Math.random() * REQUESTS)}`
      const { status, body } = await calls.ask({
        clientRequestId,
        timeoutMs: 1_000 + Math.floor(Math.random() * 3_000),
      })
      assert.equal(status, 201)
      note(number, body)
      const dice = Math.random()
      if (dice < 0.3) {
        const answer = await calls.decide(body.id, dice < 0.2 ? 'APPROVED' : 'REJECTED')
        assert.ok([200, 409].includes(answer.status), answer.text)
        const { current = answer.body } = answer.body as unknown as { current?: Approval }
        note(number, current)
        if (answer.status === 200) decided.push(current)
      }
      const read = await calls.read(body.id, dice > 0.9 ? '?wait=1' : '')
      assert.equal(read.status, 200)
      note(number, read.body)
    }
  }

  try {
    await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
    assert.ok(seen.size <= REQUESTS, 'one approval for each request')
    const outcomes = new Set<ApprovalStatus>()
    for (const [id, all] of seen) {
      const last = (await calls.read(id)).body
      outcomes.add(last.status)
      const settled = all.filter(({ approval }) => approval.status !== 'PENDING')
      // Everyone who got an outcome got the same one, byte for byte.
      for (const { approval } of settled) assert.deepEqual(approvalOf(approval), last)
      const winners = decided.filter((approval) => approval.id === id)
      assert.equal(winners.length, last.decidedAt === null ? 0 : 1)
      for (let number = 0; number < CLIENTS; number++) {
        const told = all.filter((each) => each.client === number).map(({ approval }) => approval.status)
        const firstOutcome = told.findIndex((status) => status !== 'PENDING')
        assert.ok(firstOutcome === -1 || !told.slice(firstOutcome).includes('PENDING'), told.join())
      }
    }
    assert.ok(outcomes.has('APPROVED') && outcomes.has('REJECTED') && outcomes.has('EXPIRED'), [...outcomes].join())
  } finally {
    await service.close()
  }
})

/** The public part of what an operator received. */
function approvalOf({ id, status, expiresAt, decidedAt, decisionReason }: Approval): Approval {
  return { id, status, expiresAt, decidedAt, decisionReason }
}
