/** Looks up prompts and policies for commands. */
import type { DeployableKind } from '@tacho/contract/operator/deployment.ts'
import { Refused, type OperatorClient } from '../operator-client.ts'
import { wrongUsage } from '../stop.ts'

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
  const [named] = (await client.listPrompts({ params: { workspaceId }, query: { name: given } })).items
  const byId = () => orNull(client.readPrompt({ params: { workspaceId, promptId: given } }))
  const prompt = named ?? (UUID.test(given) ? await byId() : null)
  if (prompt) return { kind: 'prompt', id: prompt.promptId, name: prompt.name, newest: prompt.newest.version }
  throw wrongUsage(`Unknown prompt ${JSON.stringify(given)}: \`tacho prompts list\` shows all.`)
}

async function findPolicy(client: OperatorClient, workspaceId: string, given: string): Promise<Found> {
  const policy = await orNull(client.readPolicy({ params: { workspaceId, policyId: given } }))
  if (policy) return { kind: 'policy', id: policy.policyId, name: policy.policyId, newest: policy.newest.version }
  throw wrongUsage(`Unknown policy ${JSON.stringify(given)}: \`tacho policies list\` shows all.`)
}

/** Null if the server answers `not_found`. */
async function orNull<Reply>(call: Promise<Reply>): Promise<Reply | null> {
  try {
    return await call
  } catch (error) {
    if (error instanceof Refused && error.result.code === 'not_found') return null
    throw error
  }
}
