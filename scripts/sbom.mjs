// Lists the components of one of our packages, in CycloneDX. Reads package-lock.json, because `npm sbom` rejects a
// package with an override.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'

/**
 * @param {{ name: string, version: string, purl: string }} subject
 * @param {string[]} workspaces the folders with the dependencies of the package
 */
export function sbomOf({ name, version, purl }, workspaces) {
  const { packages } = JSON.parse(readFileSync(path.join(root, 'package-lock.json'), 'utf8'))
  const components = [...reached(packages, workspaces)]
    .toSorted((a, b) => (a < b ? -1 : 1))
    .map((where) => componentOf(where, packages[where]))
  const tools = { components: [{ type: 'application', name: 'scripts/sbom.mjs' }] }
  const component = {
    type: 'application',
    'bom-ref': purl,
    name,
    version,
    purl,
    licenses: [{ expression: 'Apache-2.0' }],
  }
  const dependencies = [{ ref: purl, dependsOn: components.map(({ purl: ref }) => ref) }]
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { tools, component },
    components,
    dependencies,
  }
}

/** All packages that the workspaces need at run time, by place. */
function reached(packages, workspaces) {
  const open = new Set(workspaces)
  const places = new Set()
  // A set may grow during the loop.
  for (const where of open) {
    // Leave out optional packages: they are for other platforms, or unused.
    for (const name of Object.keys(packages[where].dependencies ?? {})) {
      const place = placeOf(packages, where, name)
      if (place === undefined) continue
      const { link, resolved } = packages[place]
      open.add(link ? resolved : place)
      if (!link) places.add(place)
    }
  }
  return places
}

/** Searches like Node: beside the package, then in the folders above. */
function placeOf(packages, where, name) {
  for (let folder = where; ; folder = folder.replace(/(?:^|\/)(?:node_modules\/)?(?:@[^/]+\/)?[^/]*$/, '')) {
    const place = path.posix.join(folder, 'node_modules', name)
    if (place in packages) return place
    if (folder === '') return undefined
  }
}

function componentOf(where, { version, license, integrity, name = /.*node_modules\/(.*)$/.exec(where)[1] }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  const [algorithm, digest] = integrity?.split('-') ?? []
  const hashes =
    algorithm === 'sha512' ? [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] : []
  const licenses = license === undefined ? [] : [{ expression: license }]
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses, hashes }
}
