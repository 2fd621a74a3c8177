/** Runs an offline operation on a store; expected failures become a sentence. */
import type * as offlineModule from '@tacho/server/maintenance/offline.ts'
import { failed } from '../engine/stop.ts'

type Offline = typeof offlineModule

export async function storeAct<Result>(act: (offline: Offline) => Promise<Result> | Result): Promise<Result> {
  const offline = await import('@tacho/server/maintenance/offline.ts')
  try {
    return await act(offline)
  } catch (error) {
    if (error instanceof offline.StoreRefused) throw failed(error.message)
    const { code, path } = error as NodeJS.ErrnoException
    if (code !== undefined && path !== undefined) throw failed(`${JSON.stringify(path)} cannot be used (${code}).`)
    throw error
  }
}
