/**
 * The demo data for people: waiting and decided approvals, issues with a regression, a prompt with two versions, and
 * policies. The same seed adds nothing twice.
 */
import { createPublicClient } from '@tacho/client/public.ts'
import { throwing } from '@tacho/client/throwing.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import { orNull } from '../../engine/find-by-id.ts'
import { httpFetch } from '@tacho/guards/http-fetch.ts'
import { Refused, type OperatorClient } from '../../engine/operator-client.ts'
import type { Recorder } from '../recorder-client.ts'
import type { Place } from '../../tenants/tenants.ts'
import { DEMO_PROMPT, REFUND_CEILING, REFUND_LIMIT } from './place.ts'
import { chance, startStory, type DemoRun, type ToolPlan } from './story.ts'
import { BLOCKED, demoRuns, LOOP, PAYMENT_DOWN, placed, versionRuns, type Plot } from './demo-runs.ts'
import { euros, largeRefund, PROMPT_TEXTS, SUPPORT } from './shop.ts'

export interface Stage {
  url: string
  apiKey: string
  seed: string
  now: number
  recorder: Recorder
  operator: OperatorClient
  place: Place
}

const CLIENT_ID = 'tacho-demo'
const DAY_MS = 86_400_000
const REVIEW_MS = 20_000
/** Maximum number of requests of one call that may have expired in earlier demos. */
const MOST_REQUESTS = 30

const POLICIES = [
  {
    policyId: REFUND_LIMIT,
    name: 'Large refunds',
    description: 'A person looks at every refund over 200.',
    condition: 'tool.name == "refund_payment" && tool.input.amount > 200.0',
    severity: 'HIGH',
    action: 'REQUIRE_APPROVAL',
    // The inputs do not contain a currency.
    template: 'Refund **{amount} EUR** · {orderId}',
  },
  {
    policyId: REFUND_CEILING,
    name: 'Never over 1,000',
    description: 'No agent refunds this much, whatever it is told.',
    condition: 'tool.name == "refund_payment" && tool.input.amount > 1000.0',
    severity: 'CRITICAL',
    action: 'BLOCK',
  },
] as const

const REFUNDS = [
  { orderId: 'A-20417', item: 'espresso machine', amount: 649, after: null },
  { orderId: 'A-31872', item: 'road bike', amount: 980.5, after: null },
  { orderId: 'A-11203', item: 'hiking boots', amount: 239.9, after: 'approved' },
  { orderId: 'A-45550', item: 'board game', amount: 412, after: 'rejected' },
] as const

/** Returns the recorded runs. */
export async function playPeople(stage: Stage): Promise<DemoRun[]> {
  const runs = await playVersions(stage)
  for (const refund of REFUNDS) runs.push(...(await playRefund(stage, refund)))
  await playIssues(stage)
  return runs
}

/** Two versions of a prompt, and policies. Deploys them unless others are deployed. */
async function playVersions(stage: Stage): Promise<DemoRun[]> {
  const { operator } = stage
  const { workspace, environment } = stage.place
  const workspaceId = workspace.id
  const [known] = (
    await operator.listPrompts({ params: { workspaceId }, query: { name: DEMO_PROMPT, archived: 'true' } })
  ).items
  const [first, second] = PROMPT_TEXTS
  const prompt =
    known ??
    (await operator.createPrompt({
      params: { workspaceId },
      body: { name: DEMO_PROMPT, content: first, note: 'First version' },
    }))
  const params = { workspaceId, promptId: prompt.promptId }
  if (prompt.archivedAt !== null) await operator.restorePrompt({ params })
  if (prompt.newest.version === '1') {
    await operator.createPromptVersion({ params, body: { content: second, note: 'Quicker answers', follows: '1' } })
  }
  for (const policy of POLICIES) {
    const named = { params: { workspaceId, policyId: policy.policyId } }
    const known = await orNull(operator.readPolicy(named))
    if (known === null) await operator.createPolicy({ params: { workspaceId }, body: policy })
    else if (known.archivedAt !== null) await operator.restorePolicy(named)
  }
  const environmentId = environment.id
  const deployed = (await operator.listDeployments({ params: { environmentId }, query: { limit: 200 } })).items
  const items = [
    { kind: 'prompt' as const, id: prompt.promptId, version: '2' },
    ...POLICIES.map(({ policyId }) => ({ kind: 'policy' as const, id: policyId, version: '1' })),
  ].filter(({ kind, id }) => !deployed.some((one) => one.kind === kind && one.id === id))
  if (items.length > 0) await operator.deploy({ params: { environmentId }, body: { items, note: 'tacho demo' } })
  const ids = await Promise.all(
    ['1', '2'].map(async (version) => (await operator.readPromptVersion({ params: { ...params, version } })).versionId),
  )
  return record(stage, versionRuns(stage.seed, stage.now, [ids[0] ?? '', ids[1] ?? '']))
}

async function record(stage: Stage, runs: DemoRun[]): Promise<DemoRun[]> {
  for (const { runId, events } of runs) {
    if (await isUnrecorded(stage, runId)) await stage.recorder.record(events)
  }
  return runs
}

/** Whether a run is not recorded yet. Recording it again would change its times. */
async function isUnrecorded({ operator, place }: Stage, runId: string): Promise<boolean> {
  const params = { environmentId: place.environment.id, runId }
  return (await orNull(operator.readOperatorRun({ params }))) === null
}

function publicClient({ url, apiKey }: Pick<Stage, 'url' | 'apiKey'>) {
  return throwing(createPublicClient({ url, apiKey, fetch: httpFetch }), (result) => new Refused(url, result))
}

/** A refund that requires a person: it still waits, or it was decided and continued. */
async function playRefund(stage: Stage, { after, ...input }: (typeof REFUNDS)[number]): Promise<DemoRun[]> {
  const { operator, place, recorder, seed, now } = stage
  const plan = { toolName: 'refund_payment', input: { ...input, reason: 'broken' } }
  const runId = `demo-${seed}-refund-${input.orderId}`
  const hash = inputHash(plan.toolName, plan.input)
  const approval = await waitingApproval(stage, runId, hash, `Refund of ${euros(input.amount)} is over 200`)
  const run: DemoRun = { runId, about: `a large refund, ${after ?? 'waiting for a person'}`, events: [] }
  const plot: Plot = largeRefund(plan, { inputHash: hash, approvalId: approval.id }, after)
  const random = chance(runId)
  plot(startStory({ runId, sessionId: null, agent: SUPPORT }, random, run.events), random)
  const placedRuns = placed(run, now)
  const isNew = await isUnrecorded(stage, runId)
  // Record the input before the request, because the approver reads it.
  const asked = placedRuns.events.findIndex(({ eventType }) => eventType === 'POLICY_DECISION') + 1
  if (isNew) await recorder.record(placedRuns.events.slice(0, asked))
  if (after !== null && approval.status === 'PENDING') {
    const params = { environmentId: place.environment.id, approvalId: approval.id }
    const approved = after === 'approved'
    const reason = approved ? 'Two complaints about this item today' : 'The order is older than the warranty'
    await operator.decideApproval({ params, body: { decision: approved ? 'APPROVED' : 'REJECTED', reason } })
  }
  if (isNew) await recorder.record(placedRuns.events.slice(asked))
  return [placedRuns]
}

/**
 * The first request of this call that has not expired: a repeated demo shows the same waiting requests. They are
 * searched for, because each demo has a new API key, and requests belong to a key.
 */
async function waitingApproval(stage: Stage, runId: string, hash: string, reason: string) {
  const client = publicClient(stage)
  const params = { environmentId: stage.place.environment.id }
  const { items } = await stage.operator.listApprovals({ params, query: { runId, limit: 100 } })
  for (let request = 1; ; request++) {
    const known = items.find(({ clientRequestId }) => clientRequestId === `${runId}-${request}`)
    const approval =
      known ??
      (await client.createApproval({
        headers: { 'X-Service-Client-ID': CLIENT_ID },
        body: {
          clientRequestId: `${runId}-${request}`,
          runId,
          agentId: SUPPORT.id,
          policyId: REFUND_LIMIT,
          toolName: 'refund_payment',
          inputHash: hash,
          reason,
          timeoutMs: DAY_MS,
        },
      }))
    if (approval.status !== 'EXPIRED' || request === MOST_REQUESTS) return approval
  }
}

/** Reports failing tools and loops as issues, each at the end of its run. The loop was resolved and recurs. */
async function playIssues(stage: Stage): Promise<void> {
  const { seed, now, operator, place } = stage
  const client = publicClient(stage)
  const report = ({ runId, events }: DemoRun, detectionType: string, toolName: string, reasonCode: string) =>
    client.submitIssueRecord({
      body: {
        sdkInstanceId: CLIENT_ID,
        clientRecordId: `${runId}-issue`,
        recordKind: 'DETECTION',
        detectionType,
        runId,
        agentId: SUPPORT.id,
        detectedAt: events.at(-1)?.timestamp ?? now,
        payload: { toolName, reasonCode },
      },
    })
  const reportLoop = (run: DemoRun) => report(run, 'LOOP_DETECTED', 'get_order', 'SAME_ERROR')
  const runs = Map.groupBy(demoRuns(seed, now), ({ about }) => about)
  for (const run of runs.get(PAYMENT_DOWN) ?? []) {
    await report(run, 'TOOL_FAILED', 'refund_payment', 'PROVIDER_UNAVAILABLE')
  }
  for (const run of runs.get(BLOCKED) ?? []) await report(run, 'TOOL_BLOCKED', 'refund_payment', 'OVER_LIMIT')
  const loops = runs.get(LOOP) ?? []
  const newest = loops.at(-1)
  for (const run of loops.slice(0, -1)) await reportLoop(run)
  if (!newest) return
  const params = { environmentId: place.environment.id }
  const query = { runId: loops[0]?.runId ?? '', detectionType: 'LOOP_DETECTED' } as const
  const firstIssue = async () => (await operator.listIssues({ params, query })).items[0] ?? null
  for (const end = Date.now() + REVIEW_MS; (await firstIssue()) === null && Date.now() < end;) await sleep(200)
  const issue = await firstIssue()
  if (issue?.state === 'OPEN' && issue.regressions === 0) {
    await operator.resolveIssue({ params: { ...params, issueId: issue.id } })
  }
  await reportLoop(newest)
}

/** Time for which a live run waits for a person. */
const LIVE_TIMEOUT_MS = 10 * 60_000
const LOOK_MS = 2_000

/** Waits for a person's decision. If none arrives before the deadline, the call counts as rejected. */
export async function askLive(
  { url, apiKey }: Pick<Stage, 'url' | 'apiKey'>,
  { runId, plan, hash }: { runId: string; plan: ToolPlan; hash: string },
  signal: AbortSignal,
): Promise<{ id: string; outcome: Promise<'approved' | 'rejected'> }> {
  const client = publicClient({ url, apiKey })
  const headers = { 'X-Service-Client-ID': CLIENT_ID }
  const body = {
    clientRequestId: runId,
    runId,
    agentId: SUPPORT.id,
    policyId: REFUND_LIMIT,
    toolName: plan.toolName,
    inputHash: hash,
    reason: `Refund of ${euros(Number(plan.input['amount']))} is over 200`,
    timeoutMs: LIVE_TIMEOUT_MS,
  }
  const { id } = await client.createApproval({ headers, body })
  const decided = async () => {
    for (;;) {
      const { status } = await client.readApproval({ headers, params: { approvalId: id } })
      if (status !== 'PENDING') return status === 'APPROVED' ? 'approved' : 'rejected'
      if (signal.aborted) return 'rejected'
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined)
    }
  }
  return { id, outcome: decided() }
}
