/** Looks up prompts and policies for commands. */
import type { DeployableKind } from '@tacho/contract/policies/deployment.ts'
import { orNull, unknown } from '../engine/known.ts'
import type { OperatorClient } from '../engine/operator-client.ts'

/** A prompt or policy of a workspace. */
export interface Found {
  kind: DeployableKind
  /** Prompt id or policy id. */
  id: string
  /** Name of the prompt; id of the policy. */
  name: string
  /** The newest version. */
  newest: string
}

/** A prompt by its name or id; a policy by its id. */
export async function findItem(
  client: OperatorClient,
  workspaceId: string,
  kind: DeployableKind,
  given: string,
): Promise<Found> {
  return kind === 'prompt' ? findPrompt(client, workspaceId, given) : findPolicy(client, workspaceId, given)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

async function findPrompt(client: OperatorClient, workspaceId: string, given: string): Promise<Found> {
  const [named] = (await client.listPrompts({ params: { workspaceId }, query: { name: given, archived: 'true' } }))
    .items
  const byId = () => orNull(client.readPrompt({ params: { workspaceId, promptId: given } }))
  const prompt = named ?? (UUID.test(given) ? await byId() : null)
  if (prompt) return { kind: 'prompt', id: prompt.promptId, name: prompt.name, newest: prompt.newest.version }
  throw unknown('prompt', given, 'prompts list')
}

async function findPolicy(client: OperatorClient, workspaceId: string, given: string): Promise<Found> {
  const policy = await orNull(client.readPolicy({ params: { workspaceId, policyId: given } }))
  if (policy) return { kind: 'policy', id: policy.policyId, name: policy.policyId, newest: policy.newest.version }
  throw unknown('policy', given, 'policies list')
}
