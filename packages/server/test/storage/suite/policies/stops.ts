import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import { decide } from '@tacho/policy/decide.ts'
import { rejectStopped, toApproval } from '../../../../src/domain/approvals/approval.ts'
import type { NewStop } from '../../../../src/storage/policies/policies.ts'
import { uuidv7 } from '../../../../src/storage/engine/uuid.ts'
import { ask, decision } from '../approvals/approval-sample.ts'
import { changeShared, decidedHere, sharedStorage, type OpenStorage } from '../open.ts'
import { append, event, NOON } from '../sample.ts'
import { auditEntry, deploy, newHome, newPolicy } from './configuration-sample.ts'

let made = 0

const stopOf = (environmentId: string, given: Partial<NewStop> = {}): NewStop => ({
  environmentId,
  id: uuidv7(NOON + ++made),
  scope: 'agent',
  target: 'support',
  reason: 'It pays twice',
  stoppedAt: NOON,
  stopperKind: 'operator',
  stopperId: 'op-1',
  stoppedBy: 'Ada',
  ...given,
})

const call = (given: { agent?: { id?: string; name?: string }; run?: string; session?: string }) => ({
  tool: { name: 'pay', input: {} },
  agent: { id: given.agent?.id ?? '', name: given.agent?.name ?? '' },
  run: { id: given.run ?? '', cost: 0, totalTokens: 0, toolCalls: 0 },
  session: { id: given.session ?? '' },
  now: new Date(NOON),
})

export function stopsSuite(open: OpenStorage) {
  describe('a stop', () => {
    const storage = sharedStorage(open)
    const resumed = { at: NOON + 9, by: 'Bo', reason: null }

    async function stop(environmentId: string, given: Partial<NewStop> = {}) {
      const result = await storage().stop(stopOf(environmentId, given), [])
      assert.ok('stop' in result, result.outcome)
      return { ...result.stop, outcome: result.outcome, isKnown: result.isKnown }
    }

    async function served(environmentId: string): Promise<RuntimeConfig> {
      const { text, revision } = await storage().readConfiguration(environmentId, null)
      const body = JSON.parse(text ?? '') as RuntimeConfig
      assert.equal(body.revision, revision)
      return body
    }

    const verdict = async (environmentId: string, given: Parameters<typeof call>[0]) => {
      const { action, matched } = decide((await served(environmentId)).policies, call(given) as never)
      return [action, matched[0]?.message ?? null]
    }

    test('is counted for the metrics of the whole store while it holds', async () => {
      const { development: environmentId } = await newHome(storage())
      const before = await storage().countInForce(NOON)
      const { id } = await stop(environmentId)
      assert.deepEqual(await storage().countInForce(NOON), { ...before, stops: before.stops + 1 })
      await storage().resume(environmentId, id, resumed, [])
      assert.deepEqual(await storage().countInForce(NOON), before)
    })

    test('blocks what it names and nothing else, and ends without a trace in the configuration', async () => {
      const { workspaceId, development: env, production: other } = await newHome(storage())
      const policy = await newPolicy(storage(), workspaceId)
      await deploy(storage(), env, ['policy', policy, 1])
      const before = await served(env)
      const stops = [
        await stop(env),
        await stop(env, { scope: 'run', target: 'run "1"\n' }),
        await stop(env, { scope: 'session', target: 'chat' }),
      ]
      const blocked = ['BLOCK', 'Stopped by Ada. Reason: It pays twice']
      for (const given of [
        { agent: { id: 'support' } },
        { agent: { name: 'support' } },
        { run: 'run "1"\n' },
        { session: 'chat' },
      ]) {
        assert.deepEqual(await verdict(env, given), blocked)
        assert.deepEqual(await verdict(other, given), ['ALLOW', null])
      }
      for (const given of [{ agent: { id: 'support2' } }, { run: 'support' }, { session: 'run "1"\n' }, {}]) {
        assert.deepEqual(await verdict(env, given), ['ALLOW', null])
      }
      const whole = await stop(env, { scope: 'environment', target: '' })
      assert.deepEqual(await verdict(env, {}), blocked)
      const page = { limit: 10, after: null }
      const { rows } = await storage().listDeployments(env, page)
      assert.deepEqual(
        rows.map(({ id, publication }) => [id, publication]),
        [[policy, 1]],
      )
      assert.equal((await storage().listPolicies(workspaceId, { limit: 10, after: null }, true)).rows.length, 1)
      assert.equal((await storage().listDeploymentChanges(env, {}, page)).rows.length, 1)
      for (const { id } of [...stops, whole]) {
        assert.equal((await storage().resume(env, id, resumed, []))?.outcome, 'resumed')
      }
      assert.deepEqual(await served(env), before)
      assert.deepEqual((await storage().listStops(env, { inEffect: true }, page)).rows, [])
      assert.equal((await storage().listStops(env, { inEffect: false }, page)).rows.length, 4)
    })

    test('outlives publications that come before, after and at the same time', async () => {
      const { workspaceId, development: env } = await newHome(storage())
      const policies = await Promise.all(Array.from({ length: 4 }, () => newPolicy(storage(), workspaceId)))
      const outcomes = await Promise.all([
        ...policies.map((id) => deploy(storage(), env, ['policy', id, 1])),
        stop(env, { scope: 'run', target: 'a' }),
        stop(env, { scope: 'run', target: 'b' }),
      ])
      assert.equal(outcomes.length, 6)
      const ids = (await served(env)).policies.map(({ policyId }) => policyId)
      assert.deepEqual(ids.filter((id) => !id.startsWith('stop:')).toSorted(), policies.toSorted())
      assert.equal(ids.length, 6)
    })

    test('is one, however many operators stop the same scope, and is resumed once', async () => {
      const { development: env, production: other } = await newHome(storage())
      const stops = await Promise.all(Array.from({ length: 5 }, () => stop(env)))
      assert.equal(new Set(stops.map(({ id }) => id)).size, 1)
      assert.equal(stops.filter(({ outcome }) => outcome === 'stopped').length, 1)
      const id = stops[0]?.id ?? ''
      assert.equal(await storage().resume(other, id, resumed, []), null)
      const ends = await Promise.all(Array.from({ length: 5 }, () => storage().resume(env, id, resumed, [])))
      assert.equal(ends.filter((end) => end?.outcome === 'resumed').length, 1)
      assert.equal((await stop(env)).outcome, 'stopped')
    })

    test('is refused beyond the limit, with nothing written', async () => {
      const { workspaceId, development: env } = await newHome(storage())
      for (let n = 0; n < LIMITS.stops; n++) await stop(env, { scope: 'run', target: `run-${n}` })
      const before = await served(env)
      const entry = auditEntry(workspaceId, 'stop.create')
      assert.deepEqual(await storage().stop(stopOf(env), [entry]), { outcome: 'too_many' })
      assert.deepEqual(await served(env), before)
      assert.equal((await storage().listAudit(workspaceId, { limit: 5, after: null })).rows.length, 0)
    })

    test('works while a deployed version is damaged', async () => {
      const { workspaceId, development: env } = await newHome(storage())
      const policy = await newPolicy(storage(), workspaceId)
      await deploy(storage(), env, ['policy', policy, 1])
      const damage = `UPDATE policy_versions SET condition = 'true' WHERE policy_id = '${policy}' AND workspace_id = ?`
      await changeShared(open, damage, workspaceId)
      await stop(env)
      assert.deepEqual((await verdict(env, { agent: { id: 'support' } }))[0], 'BLOCK')
    })

    test('names an agent as the console shows it, a run by its internal id, and says what is unknown', async () => {
      const { development: env } = await newHome(storage())
      const ofMailer = event({ runId: 'r2', agentId: null, agentName: 'Mailer' })
      await append(
        storage(),
        env,
        event({ runId: 'r1', agentId: 'agent-7', agentName: 'Support', sessionId: 'chat' }),
        ofMailer,
      )
      const run = await storage().findRun(env, 'r1')
      const internal = run?.id ?? ''
      assert.deepEqual((await stop(env, { target: 'Support' })).names, ['Support', 'agent-7'])
      assert.deepEqual(await verdict(env, { agent: { id: 'agent-7', name: 'Other' } }), [
        'BLOCK',
        'Stopped by Ada. Reason: It pays twice',
      ])
      assert.equal((await stop(env, { target: 'Mailer' })).isKnown, true)
      assert.deepEqual((await stop(env, { scope: 'run', target: internal })).names, [internal, 'r1'])
      assert.equal((await stop(env, { scope: 'session', target: 'chat' })).isKnown, true)
      for (const scope of ['agent', 'session', 'run'] as const) {
        assert.equal((await stop(env, { scope, target: 'no such' })).isKnown, false)
      }
      const page = { limit: 50, after: null }
      const ofRun = await storage().listStops(env, { inEffect: true, run: 'r1' }, page)
      assert.deepEqual(ofRun.rows.map(({ target }) => target).toSorted(), [internal, 'Support', 'chat'].toSorted())
    })

    test('rejects what waits in its scope, and no approval of before serves a call while it is in effect', async () => {
      const { development: env } = await newHome(storage())
      await append(storage(), env, event({ runId: 'r1', agentId: 'support', sessionId: 'chat' }))
      const [byAgent, byRun, other, approved] = [
        await ask(storage(), env, { agentId: 'support' }),
        await ask(storage(), env, { runId: 'r1' }),
        await ask(storage(), env, { agentId: 'mailer' }),
        await ask(storage(), env, { agentId: 'support' }),
      ]
      await storage().decideApprovals(env, [approved.id], decision({ now: NOON + 1 }), [])
      const { id } = await stop(env)
      assert.equal(await rejectStopped(storage(), env, NOON + 2), 2)
      const find = (approvalId: string) => storage().findApproval(env, approvalId)
      for (const { id: rejected } of [byAgent, byRun]) {
        const row = await find(rejected)
        assert.deepEqual(
          [row?.status, row?.decisionReason, row?.deciderName],
          ['REJECTED', 'Stopped by Ada. Reason: It pays twice', 'Ada'],
        )
      }
      assert.equal((await find(other.id))?.status, 'PENDING')
      const row = await find(approved.id)
      assert.ok(row)
      const over = await storage().findStopOver(env, row)
      assert.equal(over?.id, id)
      assert.equal(toApproval(row, over).status, 'REJECTED')
      await storage().resume(env, id, resumed, [])
      assert.equal(await storage().findStopOver(env, row), null)
      assert.equal(await rejectStopped(storage(), env, NOON + 2), 0)
    })

    test(
      'clients of many waiting requests hear of it before the last ones are rejected',
      decidedHere(open),
      async () => {
        const { development: env } = await newHome(storage())
        const runs = Array.from({ length: 70 }, (_, n) => `many-${n}`)
        await append(storage(), env, ...runs.map((runId) => event({ runId, agentId: 'support' })))
        const asked = await Promise.all(
          Array.from({ length: 210 }, (_, n) => ask(storage(), env, { runId: `many-${n % 80}` })),
        )
        await stop(env)
        const seen: number[] = []
        let looks = Promise.resolve()
        const look = async () => {
          const rows = await storage().findApprovals(
            env,
            asked.map(({ id }) => id),
          )
          seen.push(rows.filter(({ status }) => status === 'REJECTED').length)
        }
        const rejected = await rejectStopped(storage(), env, NOON + 2, () => {
          looks = looks.then(look)
        })
        await looks
        // Ten of every 80 runs belong to another agent.
        const left = asked.filter((_, n) => n % 80 >= 70).length
        assert.deepEqual([rejected, seen.length, seen.at(-1)], [210 - left, 2, 210 - left])
      },
    )
  })
}
