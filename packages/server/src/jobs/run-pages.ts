/** Addresses of runs in the console, for messages. */
import type { Storage } from '../storage/storage.ts'

export interface RunPages {
  /** `run`: its internal id. Null: the environment was deleted. */
  urlOf(environmentId: string, run: string): Promise<string | null>
}

/** `publicUrl`: where people reach the server. With ids, so that a renamed workspace is found. */
export function runPages(storage: Pick<Storage, 'findEnvironment'>, publicUrl: () => string): RunPages {
  return {
    async urlOf(environmentId, run) {
      const environment = await storage.findEnvironment(environmentId)
      if (environment === null) return null
      return `${publicUrl()}/w/${environment.workspaceId}/${environmentId}/runs/${run}`
    },
  }
}
