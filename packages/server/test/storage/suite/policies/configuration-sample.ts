/** Complete tenants, prompts, policies and publications for tests. A test gives only the fields that matter to it. */
import assert from 'node:assert/strict'
import type { AuditEntry } from '../../../../src/storage/people/operators.ts'
import type { Intent, Published } from '../../../../src/storage/policies/deployments.ts'
import type { NewPolicyVersionRow, NewPromptVersionRow } from '../../../../src/storage/policies/policies.ts'
import type { Storage } from '../../../../src/storage/storage.ts'
import { newId, NOON } from '../sample.ts'

export interface Home {
  workspaceId: string
  /** Two environments. */
  development: string
  production: string
}

export async function newHome(storage: Storage): Promise<Home> {
  const [workspaceId, development, production] = [newId(), newId(), newId()]
  await storage.createWorkspace({ id: workspaceId, name: newId(), createdAt: NOON }, [])
  for (const [id, name] of [
    [development, 'development'],
    [production, 'production'],
  ] as const) {
    await storage.createEnvironment({ id, workspaceId, name, createdAt: NOON }, [])
  }
  return { workspaceId, development, production }
}

export function auditEntry(workspaceId: string, action = 'test.act'): AuditEntry {
  const actor = { actorKind: 'token' as const, actorId: 't', actorName: 'script' }
  const target = { targetKind: 'test', targetId: 'x', detail: '{}', requestId: 'r', address: null }
  return { id: newId(), workspaceId, environmentId: null, at: NOON, ...actor, action, ...target }
}

export function promptVersion(content: string, given: Partial<NewPromptVersionRow> = {}): NewPromptVersionRow {
  return { id: newId(), content, author: 'ada', note: null, createdAt: NOON, ...given }
}

export function policyVersion(given: Partial<NewPolicyVersionRow> = {}): NewPolicyVersionRow {
  const said = { name: 'No refunds', description: null, condition: 'tool.name == "refund"' }
  const effect = {
    severity: 'HIGH' as const,
    action: 'BLOCK' as const,
    onError: 'act' as const,
    approvers: null,
    grants: null,
    template: null,
  }
  return { ...said, ...effect, author: 'ada', note: null, createdAt: NOON, ...given }
}

/** A prompt with one version per content; returns its id. */
export async function newPrompt(storage: Storage, workspaceId: string, ...contents: string[]): Promise<string> {
  const [first = 'Be kind', ...further] = contents
  const id = newId()
  const prompt = { id, workspaceId, name: id, createdAt: NOON }
  assert.equal(await storage.createPrompt(prompt, promptVersion(first), []), 'created')
  for (const content of further) {
    await storage.createPromptVersion(workspaceId, id, promptVersion(content), null, [])
  }
  return id
}

/** A policy with that many versions; returns its id. */
export async function newPolicy(storage: Storage, workspaceId: string, versions = 1): Promise<string> {
  const id = `policy-${newId()}`
  assert.equal(await storage.createPolicy({ id, workspaceId, createdAt: NOON }, policyVersion(), []), 'created')
  for (let number = 2; number <= versions; number++) {
    const version = policyVersion({ condition: `tool.name == "${number}"` })
    await storage.createPolicyVersion(workspaceId, id, version, null, [])
  }
  return id
}

export function publish(
  storage: Storage,
  environmentId: string,
  intent: Intent,
  audit: AuditEntry[] = [],
): Promise<Published> {
  return storage.publish({ environmentId, intent, note: null, by: 'ada', now: NOON }, audit)
}

export function deploy(
  storage: Storage,
  environmentId: string,
  ...items: [kind: 'prompt' | 'policy', id: string, version: number | null][]
): Promise<Published> {
  const named = items.map(([kind, id, version]) => ({ kind, id, version }))
  return publish(storage, environmentId, { action: 'DEPLOY', items: named })
}

/** The deployed versions, each as `kind id version`. */
export async function inForce(storage: Storage, environmentId: string): Promise<string[]> {
  const rows = (await storage.listDeployments(environmentId, { limit: 1000, after: null })).rows
  return rows.map(({ kind, id, version }) => `${kind} ${id} ${version}`)
}
