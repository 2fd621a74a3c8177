// Decides when a build is out of date: when a source is newer.
import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip as gzipWith } from 'node:zlib'

export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * @param {string} file that the build writes last
 * @param {string[]} sources glob patterns; folders match too, because deleting a file changes the time of its folder
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

const [gzip, brotli] = [promisify(gzipWith), promisify(brotliCompress)]

/** Levels of brotli. The best one makes the console 8 % smaller but takes longer than Vite, so only packages use it. */
export const [QUICK, BEST] = [6, 11]

/**
 * Writes compressed files of the console's build, on all cores.
 * @param {string} folder the build
 * @param {number} quality
 */
export async function compressAssets(folder, quality) {
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }
  const files = globSync('assets/*.{js,css,svg}', { cwd: folder }).map((file) => path.join(folder, file))
  const compressed = files.flatMap((file) => {
    const bytes = readFileSync(file)
    return [
      gzip(bytes).then((of) => writeFileSync(`${file}.gz`, of)),
      brotli(bytes, options).then((of) => writeFileSync(`${file}.br`, of)),
    ]
  })
  await Promise.all(compressed)
}
