/** Calls about prompts, policies and deployments over HTTP, for tests. */
import assert from 'node:assert/strict'
import type { Policy } from '@tacho/contract/policies/policy.ts'
import type { Prompt } from '@tacho/contract/policies/prompt.ts'
import type { PublicationResult } from '@tacho/contract/policies/deployment.ts'
import type { RuntimeConfig } from '@tacho/contract/policies/runtime-config.ts'
import type { Answer, Service } from './service.ts'

export type Item = ['prompt' | 'policy', string]

export interface ConfigurationCalls {
  workspaceId: string
  /** Another environment of the workspace. */
  staging: string
  prompts: string
  policies: string
  newPrompt(content?: string): Promise<Prompt>
  pushPrompt(promptId: string, content: string): Promise<void>
  newPolicy(given?: Record<string, unknown>): Promise<Policy>
  pushPolicy(policyId: string, condition: string): Promise<void>
  deploy(items: [...Item, string | null][], environmentId?: string): Promise<Answer<PublicationResult>>
  promote(body: object, environmentId?: string): Promise<Answer<PublicationResult>>
  rollBack(items: Item[], environmentId?: string): Promise<Answer<PublicationResult>>
  load(headers?: Record<string, string>): Promise<Answer<RuntimeConfig>>
}

let count = 0

export const policyBody = (given: Record<string, unknown> = {}) => ({
  policyId: `policy-${++count}`,
  condition: 'tool.name == "refund"',
  severity: 'HIGH',
  action: 'BLOCK',
  ...given,
})

export async function configurationCalls(service: Service): Promise<ConfigurationCalls> {
  const { body } = await service.operator<{ items: { id: string }[] }>('/workspaces')
  const workspaceId = body.items[0]?.id ?? ''
  const { body: staging } = await service.operator<{ id: string }>(`/workspaces/${workspaceId}/environments`, {
    body: { name: 'staging' },
  })
  const prompts = `/workspaces/${workspaceId}/prompts`
  const policies = `/workspaces/${workspaceId}/policies`
  const deployments = (environmentId = service.environmentId) => `/environments/${environmentId}/deployments`
  const named = (items: Item[]) => items.map(([kind, id]) => ({ kind, id }))
  const made = async <Body>(call: Promise<Answer<Body>>) => {
    const { status, body, text } = await call
    assert.equal(status, 201, text)
    return body
  }
  return {
    workspaceId,
    staging: staging.id,
    prompts,
    policies,
    newPrompt: (content = 'Be kind') =>
      made(service.operator<Prompt>(prompts, { body: { name: `prompt ${++count}`, content } })),
    async pushPrompt(promptId, content) {
      await made(service.operator(`${prompts}/${promptId}/versions`, { body: { content } }))
    },
    newPolicy: (given) => made(service.operator<Policy>(policies, { body: policyBody(given) })),
    async pushPolicy(policyId, condition) {
      const { policyId: _, ...version } = policyBody({ condition })
      await made(service.operator(`${policies}/${policyId}/versions`, { body: version }))
    },
    deploy: (items, environmentId) =>
      service.operator(deployments(environmentId), {
        body: { items: items.map(([kind, id, version]) => ({ kind, id, version })) },
      }),
    promote: (given, environmentId) => service.operator(`${deployments(environmentId)}/promote`, { body: given }),
    rollBack: (items, environmentId) =>
      service.operator(`${deployments(environmentId)}/rollback`, { body: { items: named(items) } }),
    load: (headers = {}) => service.api('/runtime-config', { headers }),
  }
}
