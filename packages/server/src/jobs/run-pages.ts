import type { Storage } from '../storage/storage.ts'

export interface RunPages {
  /** Null: it was deleted. */
  placeOf(environmentId: string): Promise<{ environment: string; url: string } | null>
  /** `run` is its internal id. Null: the environment was deleted. */
  urlOf(environmentId: string, run: string): Promise<string | null>
}

/** Contains ids, so that a renamed workspace is found. */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string): RunPages {
  async function placeOf(environmentId: string) {
    const found = await storage.findEnvironment(environmentId)
    return found && { environment: found.name, url: `${publicUrl()}/w/${found.workspaceId}/${environmentId}` }
  }
  return {
    placeOf,
    async urlOf(environmentId, run) {
      const place = await placeOf(environmentId)
      return place && `${place.url}/runs/${run}`
    },
  }
}
