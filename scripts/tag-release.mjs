// Commits and tags a release, and begins the next version. Pushes nothing:
//   node scripts/tag-release.mjs 0.1.0
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'

const [version] = process.argv.slice(2)
const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const stop = (sentence) => {
  console.error(`tag-release: ${sentence}`)
  process.exit(1)
}

if (!/^\d+\.\d+\.\d+$/.test(version ?? '')) stop('give the version to release, such as 0.1.0.')
if (git('status', '--porcelain') !== '') stop('the clone has changes. Commit or remove them.')
if (git('tag', '--list', `v${version}`) !== '') stop(`v${version} exists.`)

const changelog = path.join(root, 'CHANGELOG.md')
const text = readFileSync(changelog, 'utf8')
if (!/^## Unreleased\n+- /m.test(text)) stop('CHANGELOG.md has nothing under "## Unreleased".')
const day = new Date().toISOString().slice(0, 10)
writeFileSync(changelog, text.replace('## Unreleased\n', `## Unreleased\n\n## ${version} (${day})\n`))
setVersion(version)
git('commit', '--quiet', '--all', '--allow-empty', '--message', `Release ${version}`)
git('tag', '--annotate', `v${version}`, '--message', `Tacho ${version}`)

const [major, minor] = version.split('.').map(Number)
const next = `${major}.${minor + 1}.0`
setVersion(next)
git('commit', '--quiet', '--all', '--message', `Begin ${next}`)
console.log(`Tagged v${version}. To publish it: git push origin HEAD:main v${version}`)

function setVersion(given) {
  const file = path.join(root, 'package.json')
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^( {2}"version": ").*(",)$/m, `$1${given}$2`))
  for (const script of ['check-versions.mjs', 'check-upgrades.mjs'])
    execFileSync(process.execPath, [path.join(root, 'scripts', script), '--write'], { stdio: 'inherit' })
}
