// A build is made again when a source is newer.
import { globSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * @param {string} file that the build writes last
 * @param {string[]} sources glob patterns; folders match too, because theirs is the time at which a file was deleted
 * @returns {boolean} whether it is missing, or older than a source
 */
export function isStale(file, sources) {
  try {
    const builtAt = statSync(path.join(root, file)).mtimeMs
    return globSync(sources, { cwd: root }).some((source) => statSync(path.join(root, source)).mtimeMs > builtAt)
  } catch {
    return true
  }
}
