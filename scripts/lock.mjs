// npm omits an optional package from package-lock.json if the registry does not have it (a mirror may have only some
// platforms). Then `npm ci` refuses that file everywhere. This script adds the missing entries: enough for npm to skip them
// on other platforms, and to fetch them on their own. Run it after every `npm install`.
// It also adds the URL of each package's file: without it, `npm ci` reads the list of all versions of each package, and
// takes twice as long. The URL must be of the public registry, because npm replaces only that one by the configured
// registry.
//   node scripts/lock.mjs           completes package-lock.json, also that of the pinned Node
//   node scripts/lock.mjs --check   only reports what is missing
import { readFileSync, writeFileSync } from 'node:fs'

const systems = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64']
const libraries = { gnu: 'glibc', gnueabihf: 'glibc', musl: 'musl', musleabihf: 'musl' }
/** npm replaces this registry by the configured one. */
const PUBLIC_REGISTRY = 'https://registry.npmjs.org/'
const wrong = []

/** Completes the lock, and returns what was missing. */
function complete(lock) {
  for (const [where, { dev, optionalDependencies = {} }] of Object.entries(lock.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const entries = [`${where}/node_modules/${name}`, `node_modules/${name}`]
      if (entries.some((entry) => lock.packages[entry])) continue
      const words = name.split(/[/-]/)
      const os = words.filter((word) => systems.includes(word))
      const cpu = words.filter((word) => processors.includes(word))
      const libc = words.flatMap((word) => (os.includes('linux') && libraries[word]) || [])
      wrong.push(`${name}@${version} is not in package-lock.json`)
      if (os.length + cpu.length === 0) throw new Error(`Which platform is ${name} for? Its name does not say.`)
      lock.packages[`node_modules/${name}`] = {
        version,
        ...(cpu.length > 0 && { cpu }),
        ...(dev && { dev }),
        ...(libc.length > 0 && { libc }),
        optional: true,
        ...(os.length > 0 && { os }),
      }
    }
  }
  for (const [where, entry] of Object.entries(lock.packages)) {
    if (!entry.integrity && !/^https?:/.test(entry.resolved)) continue
    const name = entry.name ?? where.slice(where.lastIndexOf('node_modules/') + 'node_modules/'.length)
    const resolved = `${PUBLIC_REGISTRY}${name}/-/${name.split('/').at(-1)}-${entry.version}.tgz`
    if (entry.resolved === resolved) continue
    wrong.push(`${where} does not name its file in the public registry`)
    // npm writes `resolved` after the version.
    const { version, resolved: _, ...others } = entry
    const before = entry.name === undefined ? {} : { name: entry.name }
    lock.packages[where] = { ...before, version, resolved, ...others }
  }
}

for (const place of ['../package-lock.json', '../scripts/pinned-node/package-lock.json']) {
  const file = new URL(place, import.meta.url)
  const lock = JSON.parse(readFileSync(file, 'utf8'))
  complete(lock)
  if (process.argv.includes('--check')) continue
  const byName = Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1))
  writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(byName) }, null, 2)}\n`)
}
if (process.argv.includes('--check') && wrong.length > 0) {
  console.error([...wrong, 'Run `node scripts/lock.mjs`.'].join('\n'))
  process.exit(1)
}
