// Checks that all packages have the version in the repository's package.json, because they are released together.
//   node scripts/check-versions.mjs           reports which differ
//   node scripts/check-versions.mjs --write   sets them
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'

const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const NUMBER = String.raw`\d+\.\d+\.\d+[^"]*`
/** The place of the version in each kind of file. */
const PLACES = [
  { files: '{packages/*,bench}/package.json', form: `("(?:version|@tacho/[a-z-]+)": ")(${NUMBER})` },
  { files: 'sdks/python/pyproject.toml', form: `(^version = ")(${NUMBER})` },
  { files: 'sdks/python/src/tacho_sdk/__init__.py', form: `(^__version__ = ")(${NUMBER})` },
]

for (const { files, form } of PLACES) {
  for (const file of globSync(files, { cwd: root })) {
    compare(file, (text) => text.replaceAll(new RegExp(form, 'gm'), (_, before) => before + version))
  }
}
compare('package-lock.json', lockWithVersion)

function compare(file, withVersion) {
  const text = readFileSync(path.join(root, file), 'utf8')
  const same = withVersion(text)
  if (same === text) return
  if (process.argv.includes('--write')) writeFileSync(path.join(root, file), same)
  else {
    console.error(`${file} has another version than package.json: run node scripts/check-versions.mjs --write`)
    process.exitCode = 1
  }
}

function lockWithVersion(text) {
  const lock = JSON.parse(text)
  lock.version = version
  for (const [where, described] of Object.entries(lock.packages)) {
    if (where.includes('node_modules/')) continue
    if ('version' in described) described.version = version
    for (const kind of ['dependencies', 'devDependencies']) {
      for (const name of Object.keys(described[kind] ?? {})) {
        if (name.startsWith('@tacho/')) described[kind][name] = version
      }
    }
  }
  return `${JSON.stringify(lock, null, 2)}\n`
}
