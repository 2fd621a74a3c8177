// The version is in package.json of the repository. All packages have the same, because they are released together.
//   node scripts/check-versions.mjs           reports which differ
//   node scripts/check-versions.mjs --write   sets them; then run `npm install --package-lock-only` and `node scripts/lock.mjs`
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'

const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const NUMBER = String.raw`\d+\.\d+\.\d+[^"]*`
/** Where a version of ours stands in each kind of file. */
const PLACES = [
  { files: '{packages/*,bench}/package.json', form: `("(?:version|@tacho/[a-z]+)": ")(${NUMBER})` },
  { files: 'sdks/python/pyproject.toml', form: `(^version = ")(${NUMBER})` },
  { files: 'sdks/python/src/tacho_sdk/__init__.py', form: `(^__version__ = ")(${NUMBER})` },
]

for (const { files, form } of PLACES) {
  for (const file of globSync(files, { cwd: root })) {
    const text = readFileSync(path.join(root, file), 'utf8')
    const same = text.replaceAll(new RegExp(form, 'gm'), (_, before) => before + version)
    if (same === text) continue
    if (process.argv.includes('--write')) writeFileSync(path.join(root, file), same)
    else {
      console.error(`${file} has another version than package.json: run node scripts/check-versions.mjs --write`)
      process.exitCode = 1
    }
  }
}
