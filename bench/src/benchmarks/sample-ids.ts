/** Ids of stored items, and a prompt. */
import { SCOPES } from '@tacho/contract/web/route.ts'
import type { Server } from '../server.ts'

/** The maximum number of lines that two versions are compared by. */
const PROMPT_LINES = 2_000

export type Ids = Record<string, string>

export const filled = (path: string, ids: Ids): string =>
  path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => ids[name] ?? whole)

/** Adds a prompt with two versions that have no line in common. */
export async function addPrompt(server: Server): Promise<{ promptId: string; versionId: string }> {
  const { workspaceId } = await server.home()
  const prompts = `/workspaces/${workspaceId}/prompts`
  const content = (version: number) =>
    Array.from({ length: PROMPT_LINES }, (_, line) => `Line ${line} of version ${version} of a long prompt.`).join('\n')
  const { promptId } = await server.operator<{ promptId: string }>(prompts, { name: 'long', content: content(1) })
  const second = { content: content(2), follows: '1' }
  const { versionId } = await server.operator<{ versionId: string }>(`${prompts}/${promptId}/versions`, second)
  return { promptId, versionId }
}

/** Adds a workspace with a key. Returns the headers with that key. */
export async function addTenant(server: Server, name: string): Promise<Record<string, string>> {
  const { id: workspaceId } = await server.operator<{ id: string }>('/workspaces', { name })
  const environments = `/workspaces/${workspaceId}/environments`
  const { id: environmentId } = await server.operator<{ id: string }>(environments, { name: 'production' })
  const wanted = { name, scopes: [...SCOPES] }
  const { key } = await server.operator<{ key: string }>(`/environments/${environmentId}/keys`, wanted)
  return { 'x-api-key': key }
}
