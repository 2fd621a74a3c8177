/** Converts a run of the service to a tape, with the prompts and policies in force in its environment. */
import { hash } from 'node:crypto'
import { eachItem } from '@tacho/client/items.ts'
import type { PolicyVersion } from '@tacho/contract/policies/policy.ts'
import { isObject } from '@tacho/contract/record/payload-reader.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { STOP_POLICY, stopPolicy } from '@tacho/contract/engine/words.ts'
import { createMask, loadChecksum, type MaskingOptions } from '../../../../sdk/src/recording/mask.ts'
import { known } from '../../engine/find-by-id.ts'
import { Refused, type OperatorClient } from '../../engine/operator-client.ts'
import { failed } from '../../engine/stop.ts'
import { eventsOf } from '../../runs/show.ts'
import { differencesOf, NOTHING_IGNORED } from './compare.ts'
import { recordedSteps, type Decided, type RunEvent } from './recorded-steps.ts'
import {
  tapeText,
  TAPE_LIMITS,
  TAPE_VERSION,
  type Obstacle,
  type Tape,
  type TapeHead,
  type TapePolicy,
  type TapePrompt,
} from './tape.ts'

export interface RunSource {
  client: OperatorClient
  workspaceId: string
  environmentId: string
}

export async function tapeOfRun(source: RunSource, runName: string): Promise<Tape> {
  const { client, environmentId } = source
  const read = (runId: string) => client.readOperatorRun({ params: { environmentId, runId } })
  const run = await known('run', runName, source, read)
  const place = { environmentId, runId: run.id }
  if (run.eventCount > TAPE_LIMITS.lines) throw failed(`The run has more than ${TAPE_LIMITS.lines} events.`)
  const events: RunEvent[] = []
  for await (const event of eventsOf(client, place)) events.push(event as unknown as RunEvent)
  const { approvals } = await client.listRunApprovals({ params: place })
  const decided: Decided = new Map(approvals.map((approval) => [approval.id, approval]))
  const recorded = recordedSteps(events, decided)
  const { missing, rejected, dropped } = run.completeness
  const gaps = missing + rejected + dropped
  const lost = gaps > 0 ? [{ step: 0, why: `${gaps} events of the run did not arrive` }] : []
  const { prompts, policies, labels, unknown } = await inForce(source, run.runId, events)
  const obstacles = [...lost, ...unknown, ...recorded.obstacles]
  const head: TapeHead = {
    tape: TAPE_VERSION,
    run: run.runId,
    agent: recorded.agent,
    recordedBy: recorded.recordedBy,
    outcome: recorded.outcome,
    checksum: '',
    replayable: obstacles.length === 0 ? true : obstacles,
    prompts,
    policies,
    ...(labels.length > 0 && { labels }),
  }
  return { head, steps: recorded.steps }
}

/** The deployed prompts and policies. If an event of the run names another prompt version, the tape gets that one. */
async function inForce({ client, workspaceId, environmentId }: RunSource, runId: string, events: readonly RunEvent[]) {
  const named = new Map<string, string>()
  const promptVersions = new Set<unknown>()
  for (const { payload } of events) {
    const { policyVersions, promptVersionId } = payload
    for (const [policyId, version] of Object.entries(isObject(policyVersions) ? policyVersions : {}))
      named.set(policyId, String(version))
    if (promptVersionId !== undefined) promptVersions.add(promptVersionId)
  }
  const query = { limit: LIMITS.operatorPageMax }
  const prompts: TapePrompt[] = []
  for await (const { kind, id, name, version } of eachItem(client.listDeployments, {
    params: { environmentId },
    query,
  })) {
    if (kind === 'policy') named.set(id, named.get(id) ?? version)
    else prompts.push(await promptOf(client, { workspaceId, promptId: id, name, version, used: promptVersions }))
  }
  const policies: TapePolicy[] = []
  const unknown: Obstacle[] = []
  const stops = [...named.keys()].filter((policyId) => policyId.startsWith(STOP_POLICY))
  if (stops.length > 0) {
    const stopQuery = { ...query, state: 'all', runId } as const
    for await (const stop of eachItem(client.listStops, { params: { environmentId }, query: stopQuery })) {
      const policyId = `${STOP_POLICY}${stop.id}`
      if (!named.delete(policyId)) continue
      const { condition, hasEnded } = stopInRun(policyId, events)
      const policy = stopPolicy(stop, condition)
      policies.push({ policyId, ...servedVersion(policy) })
      if (hasEnded) unknown.push({ step: 0, why: 'it went on after a stop ended' })
    }
  }
  for (const [policyId, version] of [...named].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const policy = await unlessUnknown(client.readPolicyVersion({ params: { workspaceId, policyId, version } }))
    if (!policy) {
      // A policy of the agent's own code is not on the tape: the replayed agent has it too.
      const isOwn =
        POLICY_ID.test(policyId) && !(await unlessUnknown(client.readPolicy({ params: { workspaceId, policyId } })))
      if (isOwn) continue
      unknown.push({ step: 0, why: `version ${version} of the policy ${policyId} is not known` })
      continue
    }
    policies.push({ policyId, ...servedVersion(policy) })
  }
  prompts.sort((a, b) => (a.name < b.name ? -1 : 1))
  const { labels } = await client.readToolLabels({ params: { environmentId } })
  const hashed = policies.map((policy) => {
    const { description, condition, severity, action, onError } = policy
    return { ...policy, hash: hash('sha256', JSON.stringify([condition, severity, action, onError, description])) }
  })
  return { prompts, policies: hashed, labels, unknown }
}

/** Null if the item is unknown: an event may name anything. */
async function unlessUnknown<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read
  } catch (error) {
    const { result } = error instanceof Refused ? error : {}
    if (result?.reason === 'refused' && [400, 404].includes(result.problem.status)) return null
    throw error
  }
}

const POLICY_ID = /^[\w.-]+$/

type DecidingFacts = Pick<
  PolicyVersion,
  'name' | 'description' | 'version' | 'condition' | 'severity' | 'action' | 'onError'
>

/** The members of a policy version that affect a decision. */
export function servedVersion({ name, description, version, condition, severity, action, onError }: DecidingFacts) {
  return {
    name,
    ...(description !== null && { description }),
    version,
    condition,
    severity,
    action,
    ...(onError !== null && { onError }),
  }
}

/** A stop blocks from some moment on. A replay expresses this as the number of calls that ran before it. */
function stopInRun(policyId: string, events: readonly RunEvent[]): { condition: string; hasEnded: boolean } {
  const first = events.findIndex(
    ({ payload: { policyIds } }) => Array.isArray(policyIds) && policyIds.includes(policyId),
  )
  const ran = (some: readonly RunEvent[]) => some.filter(({ eventType }) => eventType === 'TOOL_START').length
  const before = ran(events.slice(0, first))
  const condition = before === 0 ? 'true' : `run.toolCalls >= ${before}`
  return { condition, hasEnded: ran(events.slice(first)) > 0 }
}

async function promptOf(
  client: OperatorClient,
  usedPrompt: { workspaceId: string; promptId: string; name: string; version: string; used: ReadonlySet<unknown> },
): Promise<TapePrompt> {
  const { workspaceId, promptId, name, used } = usedPrompt
  let { version } = usedPrompt
  const query = { limit: LIMITS.operatorPageMax }
  if (used.size > 0) {
    for await (const one of eachItem(client.listPromptVersions, { params: { workspaceId, promptId }, query })) {
      if (used.has(one.versionId)) version = one.version
    }
  }
  const { content, versionId, contentHash } = await client.readPromptVersion({
    params: { workspaceId, promptId, version },
  })
  return { name, promptId, version, versionId, hash: contentHash, content }
}

/** The texts in a tape's head that people wrote. */
function headTexts({ prompts, policies }: TapeHead): [what: string, text: string][] {
  return [
    ...prompts.map(({ name, content }): [string, string] => [`The prompt ${name}`, content]),
    ...policies.map(({ policyId, name, description = '', condition }): [string, string] => [
      `The policy ${policyId}`,
      `${name}\n${condition}\n${description}`,
    ]),
  ]
}

/** @throws Stop if a current mask would change a step, a prompt or a policy. */
export async function maskedTape(tape: Tape, masking: MaskingOptions): Promise<string> {
  await loadChecksum()
  const mask = createMask(masking)
  for (const [what, text] of headTexts(tape.head)) {
    if (mask.text(text) !== text)
      throw failed(
        `${what} holds what the masks of today would mask. Deploy a version without it, and record the run again.`,
      )
  }
  for (const step of tape.steps) {
    const text = JSON.stringify(step)
    const masked = mask.json(text)
    if (masked === text) continue
    const [first] = differencesOf(step, JSON.parse(masked), ['step'], NOTHING_IGNORED)
    throw failed(
      `Step ${step.step} holds what the masks of today would mask, at ${first?.path ?? 'a place that cannot be named'}. Mask it where the agent records (docs/sdk), erase the run, or record it again.`,
    )
  }
  return tapeText(tape)
}
