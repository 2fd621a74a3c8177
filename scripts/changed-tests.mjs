// Finds the test files that changes since the upstream branch affect through imports, including uncommitted changes.
// Does not see files that a test reads, or starts as a program. `npm test` runs everything.
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import path from 'node:path'

// `from '…'`, `import('…')`, `new URL('…', import.meta.url)` and the modules of threads.
const NAMED = /(?:\bfrom|\bimport|\bURL\()\s*\(?\s*(['"])([^'"\n\s]+)\1|\bmoduleUrl\('([\w-]+)'/g

/**
 * @param {string[]} tests paths below the current folder, which is the repository's
 * @returns {string[]} those that changed, or import what changed, through any number of files
 */
export function changedTests(tests) {
  const reached = new Set(changedFiles())
  const importers = importersOf()
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer)
  return tests.filter((file) => reached.has(file))
}

function changedFiles() {
  const git = (...args) => execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  let base = 'HEAD'
  try {
    base = git('merge-base', 'HEAD', '@{upstream}').trim()
  } catch {
    // A branch without an upstream: use only uncommitted changes.
  }
  const changed = git('diff', '--name-only', base) + git('ls-files', '--others', '--exclude-standard')
  return changed.split('\n').filter((file) => file !== '')
}

/** For each file, the files that import it. */
function importersOf() {
  const importers = new Map()
  const files = globSync(['{packages/*,bench}/{src,test}/**/*.{ts,tsx}', 'scripts/**/*.mjs', 'sdks/**/*.mjs'])
  for (const file of files) {
    for (const [, , name, thread] of readFileSync(file, 'utf8').matchAll(NAMED)) {
      const target = thread ? path.join(path.dirname(file), `${thread}.ts`) : fileOf(file, name)
      if (target === null) continue
      if (!importers.has(target)) importers.set(target, new Set())
      importers.get(target).add(file)
    }
  }
  return importers
}

function fileOf(importer, name) {
  if (name.startsWith('.')) return path.join(path.dirname(importer), name)
  const [, folder, rest] = /^@tacho\/([^/]+)(?:\/(.+))?$/.exec(name) ?? []
  if (folder === undefined) return null
  const file = `packages/${folder}/src/${rest ?? 'index.ts'}`
  return [file, `${file}.ts`].find((place) => existsSync(place)) ?? null
}
