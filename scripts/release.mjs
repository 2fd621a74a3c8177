// Makes everything that a release publishes, in one folder:
//   npm run release               writes to ./release
//   npm run release -- <folder>
// That is: the packages of the server and of both SDKs, the Helm chart, a list of components (CycloneDX) for each, the
// changes of this version, the newest version for `tacho version --check`, and checksums. Then it checks the packages
// as the registries do. Both workflows call this script, and publish its files.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { versionOfBuild } from './build-program.mjs'
import { root } from './build.mjs'
import { packChart } from './pack-chart.mjs'
import { packPython, pythonVersion, toolsForPython } from './pack-python.mjs'
import { packSdk } from './pack-sdk.mjs'
import { pack } from './pack.mjs'
import { sbomOf } from './sbom.mjs'

/** Maximum size of each package in bytes. */
export const LARGEST = { server: 15_000_000, sdk: 150_000, wheel: 300_000, sdist: 300_000, chart: 30_000 }

/** The changes of a version; between releases, those of the next one. */
export function changesOf(version, changelog) {
  const heading = version.includes('-') ? 'Unreleased' : version
  const [, text] = changelog.split(new RegExp(`^## ${heading.replaceAll('.', '\\.')}\\b.*\\n`, 'm'))
  if (text === undefined) throw new Error(`CHANGELOG.md has no heading "## ${heading}"`)
  return text.split(/^## /m, 1)[0].trim()
}

/** Makes all files of the release in `folder`, which must be empty. Returns the packages by kind. */
export async function makeRelease(folder) {
  mkdirSync(folder, { recursive: true })
  if (readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`)
  const version = versionOfBuild()
  const notes = changesOf(version, readFileSync(path.join(root, 'CHANGELOG.md'), 'utf8'))
  const server = await pack(folder)
  const sdk = await packSdkInto(folder)
  const [wheel, sdist] = packPython(folder).toSorted((a, b) => Number(a.endsWith('.gz')) - Number(b.endsWith('.gz')))
  const chart = packChart(folder)
  const packages = { server, sdk, wheel, sdist, chart }
  const write = (name, text) => writeFileSync(path.join(folder, name), text)
  const python = pythonVersion(version)
  for (const [file, subject, workspaces] of [
    [server, { name: 'tacho', version, purl: `pkg:npm/tacho@${version}` }, ['packages/cli', 'packages/console']],
    [
      sdk,
      { name: '@tacho/sdk', version, purl: `pkg:npm/%40tacho/sdk@${version}` },
      ['packages/sdk', 'packages/policy'],
    ],
    [wheel, { name: 'tacho-sdk', version: python, purl: `pkg:pypi/tacho-sdk@${python}` }, []],
  ]) {
    write(`${path.basename(file)}.cdx.json`, `${JSON.stringify(sbomOf(subject, workspaces), null, 2)}\n`)
  }
  write('CHANGES.md', `# ${version}\n\n${notes}\n`)
  write('newest.json', `${JSON.stringify({ version })}\n`)
  write('LICENSE', readFileSync(path.join(root, 'LICENSE')))
  const sums = readdirSync(folder)
    .toSorted()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(path.join(folder, name)))
          .digest('hex')}  ${name}\n`,
    )
  write('SHA256SUMS', sums.join(''))
  return packages
}

/** Builds the SDK in a separate folder. */
async function packSdkInto(folder) {
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-sdk-'))
  try {
    const file = path.join(folder, path.basename(await packSdk(staged)))
    cpSync(path.join(staged, path.basename(file)), file)
    return file
  } finally {
    rmSync(staged, { recursive: true })
  }
}

/**
 * Checks the packages as the registries do. Returns one line for each check. Throws with the output of the first one
 * that fails.
 */
export function checkPackages(packages) {
  const done = Object.entries(packages).map(([kind, file]) => {
    const { size } = statSync(file)
    if (size > LARGEST[kind]) throw new Error(`${file} has ${size} bytes, at most ${LARGEST[kind]} are allowed`)
    return `${path.basename(file)}: ${size} bytes`
  })
  const env = { ...process.env, PATH: `${path.join(root, 'node_modules/.bin')}${path.delimiter}${process.env.PATH}` }
  const check = (name, program, args) => {
    const { error, status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8' })
    if (error?.code === 'ENOENT') return done.push(`not checked by ${name}: it is not installed`)
    if (status !== 0) throw new Error(`${name}: ${error?.message ?? stdout + stderr}`)
    return done.push(`checked by ${name}`)
  }
  const { server, sdk, wheel, sdist, chart } = packages
  // npm publishes a version between releases only with an explicit tag.
  for (const file of [server, sdk]) {
    const args = ['publish', '--dry-run', '--ignore-scripts', '--access', 'public', '--tag', 'next', file]
    check(`npm publish --dry-run ${path.basename(file)}`, 'npm', args)
  }
  check('twine check --strict', toolsForPython(), ['-m', 'twine', 'check', '--strict', wheel, sdist])
  check('helm lint --strict', 'helm', ['lint', '--strict', chart])
  return done
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = 'release', ...more] = process.argv.slice(2)
  if (folder.startsWith('-') || more.length > 0) {
    console.log(
      readFileSync(import.meta.filename, 'utf8')
        .split('import ', 1)[0]
        .replaceAll(/^\/\/ /gm, '')
        .trim(),
    )
    process.exitCode = folder === '--help' || folder === '-h' ? 0 : 2
  } else {
    for (const line of checkPackages(await makeRelease(path.resolve(folder)))) console.log(line)
  }
}
