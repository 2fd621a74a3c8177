/** Loads test packages that are not installed on every platform, such as Vercel's edge runtime. */
import { createRequire } from 'node:module'

/** The exports of a CommonJS package; undefined where it is not installed. */
export function installed(name: string): unknown {
  try {
    return createRequire(import.meta.url)(name)
  } catch {
    return undefined
  }
}

type DispatchedResponse = Response & { waitUntil(): Promise<unknown> }
interface EdgeVm {
  dispatchFetch(url: string): Promise<DispatchedResponse>
}
type EdgeVmClass = new (options: { initialCode: string; extend(context: object): object }) => EdgeVm

export const EdgeVM = (installed('@edge-runtime/vm') as { EdgeVM: EdgeVmClass } | undefined)?.EdgeVM
export const withoutEdgeRuntime = EdgeVM === undefined && '@edge-runtime/vm is not installed.'
