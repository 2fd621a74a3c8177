/** Approvals: "Client rule" of the approval states, POST and GET /firewall-approvals. */
import assert from 'node:assert/strict'
import type { Rule, Subject } from '../rule.ts'
import { garbage, hangUp, json, refuse, type Answer } from '../scripted-service.ts'
import { policy, serve } from './configuration.ts'

const ID = '01900000-0000-7000-8000-0000000000bb'
const INPUT = { amount: 500, note: 'for Ada' }
const TIMEOUT_MS = 30_000

const CONFIGURATION = serve({
  revision: 'r1',
  prompts: [],
  policies: [policy('ask', 'tool.name == "transfer"', 'REQUIRE_APPROVAL')],
})

function approval(status: string, approvalFields: object = {}): object {
  const expiresAt = new Date(Date.now() + 60_000).toISOString()
  const decidedAt = status === 'PENDING' || status === 'EXPIRED' ? null : new Date().toISOString()
  return { id: ID, status, expiresAt, decidedAt, decisionReason: null, ...approvalFields }
}

const created: Answer = json(201, approval('PENDING'))
const answer = (status: string, approvalFields: object = {}): Answer => json(200, approval(status, approvalFields))

async function prepare({ service, refresh }: Subject, ask: Answer[], answers: Answer[]): Promise<void> {
  service.script('runtime-config', CONFIGURATION)
  service.script('ask', ...ask)
  service.script('answer', ...answers)
  await refresh()
}

const transfer = (subject: Subject, approvalTimeoutMs = TIMEOUT_MS) =>
  subject.call({ callId: 'call', toolName: 'transfer', input: INPUT, approvalTimeoutMs })

/** Makes the same call without a wait, so that it ends as pending. */
const pend = (subject: Subject) =>
  subject.call({ callId: 'call', toolName: 'transfer', input: INPUT, approvalTimeoutMs: TIMEOUT_MS, approvalWaitMs: 0 })

/** A rule: with these answers, the tool must not run. */
function refused(name: string, title: string, ask: Answer[], answers: Answer[], timeoutMs = 3_000): Rule {
  return {
    id: `approvals/${name}`,
    title,
    async run(subject) {
      await prepare(subject, ask, answers)
      const { ran } = await transfer(subject, timeoutMs)
      assert.equal(ran, false, 'the tool ran')
      assert.ok(subject.service.requests('ask').length > 0, 'approval was not requested')
    },
  }
}

export const approvalRules: Rule[] = [
  {
    id: 'approvals/approved',
    title: 'The tool runs when it is approved; the request names tool and hash, and never the input',
    async run(subject) {
      const { service, clientId } = subject
      await prepare(subject, [created], [answer('PENDING'), answer('APPROVED')])
      assert.equal((await transfer(subject)).ran, true, 'the tool did not run')
      const [asked] = service.requests('ask')
      const body = asked?.json as Record<string, unknown>
      assert.equal(body['toolName'], 'transfer')
      assert.match(String(body['inputHash']), /^[0-9a-f]{32,128}$/i)
      assert.ok(Number(body['timeoutMs']) >= 1_000 && Number(body['timeoutMs']) <= 86_400_000)
      assert.ok(!asked?.text.includes('for Ada'), 'the raw input was sent')
      for (const request of [asked, ...service.requests('answer')]) {
        assert.equal(request?.headers['x-service-client-id'], clientId)
      }
      assert.ok(service.requests('answer').every(({ path }) => path.includes(ID)))
    },
  },
  {
    id: 'approvals/same-request',
    title: 'A retry of the request has the same clientRequestId; another call has its own',
    async run(subject) {
      const { service } = subject
      await prepare(subject, [refuse(500), hangUp, created], [answer('APPROVED')])
      assert.equal((await transfer(subject)).ran, true, 'the tool did not run')
      await transfer(subject)
      const ids = service.requests('ask').map(({ json: body }) => (body as Record<string, unknown>)['clientRequestId'])
      assert.equal(ids.length, 4)
      assert.equal(new Set(ids.slice(0, 3)).size, 1, 'a retry had another clientRequestId')
      assert.notEqual(ids[3], ids[0], 'another call had the same clientRequestId')
    },
  },
  {
    id: 'approvals/deterministic-hash',
    title: 'The hash depends on the input and not on the order of its keys',
    async run(subject) {
      const { service } = subject
      // A rejection would be remembered.
      await prepare(subject, [created], [answer('EXPIRED')])
      const inputs = [
        { a: 1, b: [2] },
        { b: [2], a: 1 },
        { a: 1, b: [3] },
      ]
      for (const [n, input] of inputs.entries()) {
        await subject.call({ callId: `c${n}`, toolName: 'transfer', input, approvalTimeoutMs: TIMEOUT_MS })
      }
      const hashes = service.requests('ask').map(({ json: body }) => (body as Record<string, unknown>)['inputHash'])
      assert.equal(hashes[0], hashes[1])
      assert.notEqual(hashes[0], hashes[2])
    },
  },
  {
    id: 'approvals/poll-interval',
    title: 'Two polls are at least a second apart',
    async run(subject) {
      const { service } = subject
      await prepare(subject, [created], [answer('PENDING'), answer('PENDING'), answer('PENDING'), answer('APPROVED')])
      assert.equal((await transfer(subject)).ran, true, 'the tool did not run')
      const times = service.requests('answer').map(({ at }) => at)
      for (let n = 1; n < times.length; n++) {
        const apart = (times[n] ?? 0) - (times[n - 1] ?? 0)
        assert.ok(apart >= 990, `two polls were ${Math.round(apart)} ms apart`)
      }
    },
  },
  {
    id: 'approvals/deadline',
    title: 'The wait ends at the local deadline, and the tool does not run',
    async run(subject) {
      await prepare(subject, [created], [answer('PENDING')])
      const start = performance.now()
      assert.equal((await transfer(subject, 2_000)).ran, false, 'the tool ran')
      const waited = performance.now() - start
      assert.ok(waited < 15_000, `the wait ended after ${Math.round(waited)} ms`)
    },
  },
  {
    id: 'approvals/changed-input',
    title: 'The tool never gets another input than the approved one, if its caller changes it meanwhile',
    async run(subject) {
      const { service } = subject
      await prepare(subject, [created], [answer('PENDING')])
      const calling = transfer(subject)
      await service.until('answer', 1)
      await subject.changeInput('call', { amount: 999_999 })
      service.script('answer', answer('APPROVED'))
      const { ran, input } = await calling
      if (ran) assert.deepEqual(input, INPUT, 'the tool ran with another input')
    },
  },
  {
    id: 'approvals/pending',
    title: 'A call that does not wait is pending, and does not poll',
    async run(subject) {
      await prepare(subject, [created], [refuse(500)])
      const { ran, code, approvalId } = await pend(subject)
      assert.deepEqual({ ran, code, approvalId }, { ran: false, code: 'approval_pending', approvalId: ID })
      assert.equal(subject.service.requests('answer').length, 0, 'it polled')
    },
  },
  {
    id: 'approvals/next-process',
    title: 'The next process asks with the same clientRequestId and client, and runs the tool with the approved input',
    async run(subject) {
      const { service, clientId } = subject
      await prepare(subject, [created, json(201, approval('APPROVED'))], [])
      await pend(subject)
      const next = await subject.next(await subject.handle())
      await next.refresh()
      const { ran, input } = await next.proceed({ approvalId: ID, toolName: 'transfer' })
      assert.deepEqual({ ran, input }, { ran: true, input: INPUT })
      const asked = service.requests('ask')
      assert.equal(asked.length, 2)
      const [first, second] = asked.map(({ json: body }) => (body as Record<string, unknown>)['clientRequestId'])
      assert.equal(first, second, 'another clientRequestId')
      for (const { headers } of asked) assert.equal(headers['x-service-client-id'], clientId)
    },
  },
  {
    id: 'approvals/runs-once',
    title: 'An approval that another process used does not let the tool run',
    async run(subject) {
      const { service } = subject
      await prepare(subject, [created], [answer('APPROVED')])
      const receipt = { recordId: '01900000-0000-7000-8000-0000000000dd', status: 'RECEIVED', isNew: false }
      service.script('issue-records', json(202, receipt))
      assert.equal((await transfer(subject)).ran, false, 'the tool ran')
    },
  },
  {
    id: 'approvals/new-policy',
    title: 'An approval does not count for another version of the policy',
    async run(subject) {
      const { service } = subject
      await prepare(subject, [created, json(201, approval('PENDING'))], [])
      await pend(subject)
      const newer = policy('ask', 'tool.name == "transfer"', 'REQUIRE_APPROVAL')
      service.script('runtime-config', serve({ revision: 'r2', prompts: [], policies: [{ ...newer, version: '2' }] }))
      const next = await subject.next(await subject.handle())
      await next.refresh()
      const { ran } = await pend(next)
      assert.equal(ran, false)
      const ids = service.requests('ask').map(({ json: body }) => (body as Record<string, unknown>)['clientRequestId'])
      assert.equal(new Set(ids).size, 2, 'the same clientRequestId')
    },
  },
  refused('rejected', 'REJECTED means no', [created], [answer('REJECTED')]),
  refused('expired', 'EXPIRED means no', [created], [answer('EXPIRED')]),
  refused('unknown-status', 'An unknown status means no', [created], [answer('APPROVED_BY_ROBOT')]),
  refused('lower-case', 'A status in other letters means no', [created], [answer('approved')]),
  refused(
    'other-approval',
    'The answer of another approval means no',
    [created],
    [answer('APPROVED', { id: '01900000-0000-7000-8000-0000000000cc' })],
  ),
  refused('garbage', 'An answer that is not JSON means no', [created], [garbage]),
  refused('not-found', 'A deleted approval means no', [created], [refuse(404)]),
  refused('server-error', 'Errors of the service mean no', [created], [refuse(500)]),
  refused('approved-by-error', 'An error that says APPROVED means no', [created], [json(500, approval('APPROVED'))]),
  refused('unreachable', 'A service that is down means no', [hangUp], [hangUp]),
  refused('conflict', 'A rejected request means no', [refuse(409)], [answer('APPROVED')]),
  refused('bad-creation', 'An answer to a creation that is not understood means no', [garbage], [answer('APPROVED')]),
]
