import type { Storage } from '../../storage/storage.ts'

export type RunPages = ReturnType<typeof runPages>

/** With ids, so that a renamed workspace is found. Null: the environment was deleted. `run` is an internal id. */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string) {
  async function placeOf(environmentId: string) {
    const found = await storage.findEnvironment(environmentId)
    if (!found) return null
    const { name: environment, workspaceId } = found
    return { environment, workspaceId, url: `${publicUrl()}/w/${workspaceId}/${environmentId}` }
  }
  return {
    placeOf,
    async urlOf(environmentId: string, run: string): Promise<string | null> {
      const place = await placeOf(environmentId)
      return place && `${place.url}/runs/${run}`
    },
  }
}
