import path from 'node:path'

/** The module of a thread: among sources (.ts) it is next to the caller, in the built program (.js) in the same folder as everything. */
export function moduleUrl(name: string, caller: string): URL {
  return new URL(`./${name}${path.extname(caller)}`, caller)
}
