import type { WebhookPlace } from '../domain/webhook-formats.ts'
import type { Storage } from '../storage/storage.ts'

export interface RunPages {
  placeOf(environmentId: string): Promise<(WebhookPlace & { workspaceId: string }) | null>
  /** `run` is its internal id. Null: the environment was deleted. */
  urlOf(environmentId: string, run: string): Promise<string | null>
}

/** Contains ids, so that a renamed workspace is found. */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string): RunPages {
  async function placeOf(environmentId: string) {
    const found = await storage.findEnvironment(environmentId)
    if (!found) return null
    const { name: environment, workspaceId } = found
    return { environment, workspaceId, url: `${publicUrl()}/w/${workspaceId}/${environmentId}` }
  }
  return {
    placeOf,
    async urlOf(environmentId, run) {
      const place = await placeOf(environmentId)
      return place && `${place.url}/runs/${run}`
    },
  }
}
