/**
 * Sends the examples of the documents to the real service in a sensible order. Each gets the status of its row, or the
 * refusal that is stated here.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Issue } from '../src/issues/issue.ts'
import { OPERATOR_ROUTES } from '../src/web/operator-routes.ts'
import type { Route } from '../src/web/route.ts'
import { ROUTES } from '../src/web/routes.ts'
import { Compile } from 'typebox/compile'
import { openBrowser, type Browser } from '../../server/test/http/people/browser.ts'
import { openedIssue } from '../../server/test/setup/issue-service.ts'
import { startService, type Answer, type Service } from '../../server/test/setup/service.ts'

/** Shortly after the times in the examples. */
const NOW = 1_790_000_010_000

const withBody = (routes: Record<string, Route>) => Object.entries(routes).filter(([, { body }]) => body !== undefined)
const ROWS = new Map<string, Route>([...withBody(ROUTES), ...withBody(OPERATOR_ROUTES)])

function exampleOf(name: string): unknown {
  const body = ROWS.get(name)?.body
  assert.ok(body && 'examples' in body, `${name}: give the schema of its body \`examples\``)
  return (body.examples as unknown[])[0]
}

let service: Service
let browser: Browser
before(async () => {
  service = await startService({ webhookNetworks: '127.0.0.0/8' }, () => NOW)
  browser = openBrowser(service)
})
after(() => service.close())

interface Sending {
  params?: Record<string, string>
  /** Values of this service that replace those of the example. */
  change?: Record<string, unknown>
  headers?: Record<string, string>
  /** `browser`: sent with a session or without a credential, instead of with the token. */
  by?: 'browser'
  /** Why the status differs from that of the row. */
  refused?: [status: number, code: string]
}

const sent = new Set<string>()

async function send<Body = { id: string }>(name: string, sending: Sending = {}): Promise<Body> {
  const { params = {}, change, headers = {}, by, refused } = sending
  const route = ROWS.get(name)
  assert.ok(route, name)
  const example = exampleOf(name)
  const body = change === undefined ? example : { ...(example as object), ...change }
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => params[key] ?? assert.fail(`${name}: ${key}`))
  const answer: Answer =
    name in ROUTES
      ? await service.api(path, { body, headers })
      : by === 'browser'
        ? await browser.post(path, body)
        : await service.operator(path, { body, headers })
  const [status, code] = refused ?? [route.status, undefined]
  assert.deepEqual([answer.status, (answer.body as { code?: string }).code], [status, code], `${name}: ${answer.text}`)
  sent.add(name)
  return answer.body as Body
}

test('every example is valid by its schema', () => {
  for (const [name, { body }] of ROWS) {
    assert.ok(body)
    const schema = Compile(body)
    assert.ok(schema.Check(exampleOf(name)), `${name}: ${JSON.stringify(schema.Errors(exampleOf(name)))}`)
  }
})

test('every example is accepted by the service', { timeout: 900_000 }, async () => {
  const { environmentId } = service
  const here = { environmentId }
  const { body: workspaces } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  const workspaceId = workspaces.items[0]?.id ?? ''
  const there = { workspaceId }

  await send('createWorkspace')
  const { id: production } = await send('createEnvironment', { params: there })
  const { id: keyId } = await send('createApiKey', { params: here })
  await send('changeApiKey', { params: { ...here, keyId } })
  await send('rotateApiKey', { params: { ...here, keyId } })
  await send('renameWorkspace', { params: there, change: { name: 'acme' } })
  await send('renameEnvironment', { params: here, change: { name: 'staging' } })
  const { id: tokenId } = await send('createToken', { params: there })
  await send('rotateToken', { params: { ...there, tokenId } })
  const { id: wideId } = await send('createInstallationToken')
  await send('rotateInstallationToken', { params: { tokenId: wideId } })

  // Requests of agents, and the work of operators on them.
  const recorded = await send<{ success: boolean }>('recordEvents')
  assert.equal(recorded.success, true)
  const { items: agents } = (
    await service.operator<{ items: { id: string }[] }>(`/environments/${environmentId}/agents`)
  ).body
  await send('renameAgent', { params: { ...here, agentId: agents[0]?.id ?? '' } })
  await send('submitIssueRecord')
  const headers = { 'x-service-client-id': 'billing-1' }
  const { id: approvalId } = await send('createApproval', { headers })
  await send('decideApproval', { params: { ...here, approvalId } })
  await send('createApproval', { headers, change: { clientRequestId: 'order-4712-refund' } })
  const decided = await send<{ items: unknown[] }>('decideApprovals', { params: here })
  assert.equal(decided.items.length, 1)
  const record = exampleOf('submitIssueRecord') as Record<string, unknown>
  const other = await openedIssue(service, { ...record, clientRecordId: 'rec-2', detectionType: 'LOOP_DETECTED' })
  const issue = await openedIssue(service, record)
  const onIssue = { ...here, issueId: issue.id }
  await send('commentIssue', { params: onIssue })
  await send('assignIssue', { params: onIssue })
  const merged = await send<Issue>('mergeIssue', { params: onIssue, change: { into: other.id } })
  const fingerprint = merged.groups.find(({ mergedFrom }) => mergedFrom === issue.id)?.fingerprint
  await send('splitIssue', { params: { ...here, issueId: other.id }, change: { fingerprints: [fingerprint] } })

  const { id: stopId } = await send('stop', { params: here })
  await send('resume', { params: { ...here, stopId } })
  await send('changeToolLabels', { params: here })

  // Prompts, policies and deployments.
  await send('createPolicy', { params: there })
  await send('createPolicyVersion', { params: { ...there, policyId: 'refund-limit' } })
  const { promptId } = await send<{ promptId: string }>('createPrompt', { params: there })
  await send('createPromptVersion', { params: { ...there, promptId } })
  await send('renamePrompt', { params: { ...there, promptId }, change: { name: 'welcome' } })
  await send('createSimulation', { params: here })
  await send('deploy', { params: here })
  await send('promote', { params: { environmentId: production }, change: { from: environmentId } })
  await send('deploy', { params: here, change: { items: [{ kind: 'policy', id: 'refund-limit', version: '2' }] } })
  await send('rollBack', { params: here })

  const [run] = (await service.operator<{ items: { runId: string }[] }>(`/environments/${environmentId}/runs`)).body
    .items
  await send('giveScore', { params: { ...here, runId: run?.runId ?? '' } })
  const { id: runViewId } = await send('createRunView', { params: here })
  await send('changeRunView', { params: { ...here, runViewId } })

  await send('switchSearch', { params: here })
  const { id: alertId } = await send('createAlert', { params: here })
  await send('changeAlert', { params: { ...here, alertId } })
  await send('setPrice', { params: there })
  await send('removePrice', { params: there })
  await send('changeWorkspaceRetention', { params: there })
  await send('changeRetention', { params: here })
  await send('changeStalledRule', { params: here })
  await send('previewErasure', { params: here })
  await send('findErasableSteps', { params: here })
  await send('createErasure', { params: here })
  const { id: copy } = await send('createEnvironment', { params: there, change: { name: 'copy' } })
  await send('importEnvironment', { params: { environmentId: copy } })

  // A receiver of this test, so that nothing is sent to example.com.
  const { id: webhookId } = await send('createWebhook', { params: here, change: { url: 'http://127.0.0.1:9/tacho' } })
  await send('changeWebhook', { params: { ...here, webhookId } })

  // A person is invited, accepts, gets another role, and signs in.
  await send('inviteEverywhere', { change: { email: 'grace@example.com' } })
  const { link } = await send<{ link: string }>('invite', { params: there })
  const token = link.split('#')[1]
  await send('openInvitation', { by: 'browser', change: { token } })
  await send('acceptInvitation', { by: 'browser', change: { token } })
  await send('signIn', { by: 'browser' })
  const { body: people } = await service.operator<{ items: { id: string }[] }>('/operators')
  const operatorId = people.items[0]?.id ?? ''
  await send('changeRole', { params: { ...there, operatorId } })
  await send('changeInstallationRole', { params: { operatorId } })
  // No example can contain a code that is valid later.
  for (const name of ['openSlackLink', 'confirmSlackLink']) {
    await send(name, { params: { ...here, webhookId }, by: 'browser', refused: [404, 'not_found'] })
  }
  await send('signInWithCode', { by: 'browser', refused: [401, 'unauthenticated'] })
  await send('signInWithRecoveryCode', { by: 'browser', refused: [401, 'unauthenticated'] })
  await send('changeNotificationSettings', { by: 'browser' })
  await send('addNotifiedBrowser', { by: 'browser', change: { endpoint: 'http://127.0.0.1:9/push' } })
  await send('addSecondFactor', { by: 'browser' })
  await send('confirmSecondFactor', { by: 'browser', refused: [403, 'forbidden'] })
  await send('removeSecondFactor', { by: 'browser' })
  await send('changePassword', { by: 'browser' })

  assert.deepEqual(
    [...ROWS.keys()].filter((name) => !sent.has(name)),
    [],
    'send the examples of these too',
  )
})
