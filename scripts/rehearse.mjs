// Rehearses a release on this machine: tags it in a copy of this clone, publishes it to local registries, installs it
// from there in empty projects, starts the server, and records a run with each runtime. Prints seconds and megabytes.
//   node scripts/rehearse.mjs <folder>             a new folder outside of the clone
//   node scripts/rehearse.mjs <folder> <release>   with a release that was made before
// REHEARSE_RUNTIMES: folders with more `node`, `bun` and `deno`. REHEARSE_PYTHONS: interpreters; default: python3.10 to
// python3.14 on the PATH.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { root } from './build.mjs'
import { freePort, project, run, serve } from './rehearsal.mjs'

const VERSION = '0.1.0'
/** Verdaccio needs an override: the tag of one of its packages is missing from the registry. */
const VERDACCIO = { private: true, dependencies: { verdaccio: '6.10.4' }, overrides: { 'node-fetch': '2.6.7' } }
const PYPISERVER = ['pypiserver==2.4.2', 'twine==7.0.0', 'setuptools==80.9.0']

const TYPESCRIPT = `import { Tacho, ToolBlockedError } from '@tacho/sdk'
const tacho = new Tacho({ agentName: 'rehearsal' })
await tacho.ready()
const refund = tacho.guard(({ amount }: { amount: number }) => amount, { name: 'refund' })
const name: string = process.argv[2] ?? 'run'
const refunded = await tacho.run({ runId: name }, async (run) => {
  run.userInput('Refund 20')
  run.llmCall({ model: 'gpt-4o', usage: { promptTokens: 10, completionTokens: 5 }, response: 'yes' })
  return refund({ amount: 20 }).catch((error: unknown) => (error instanceof ToolBlockedError ? error.code : 'failed'))
})
const { sent, dropped } = await tacho.shutdown()
console.log(JSON.stringify({ refunded, sent, dropped }))
`
const PYTHON = `import json, sys
import tacho_sdk as tacho
tacho.configure(agent_name="rehearsal")

@tacho.guard
def refund(amount: int) -> int:
    return amount

with tacho.run(run_id=sys.argv[1]) as run:
    run.user_input("Refund 20")
    run.llm_call(model="gpt-4o", usage={"promptTokens": 10, "completionTokens": 5}, response="yes")
    refunded = refund(20)
left = tacho.flush(30).left
print(json.dumps({"refunded": refunded, "left": left}))
`

const [given, made] = process.argv.slice(2)
if (given === undefined || given.startsWith('-')) {
  console.log(
    readFileSync(import.meta.filename, 'utf8')
      .split('import ', 1)[0]
      .replaceAll(/^\/\/ /gm, '')
      .trim(),
  )
  process.exit(given === undefined ? 2 : 0)
}
const home = path.resolve(given)
mkdirSync(home, { recursive: true })
/** Prints the duration of a step, and its result. */
async function step(name, act) {
  const begun = performance.now()
  const { note, value } = (await act()) ?? {}
  console.log(`| ${name} | ${((performance.now() - begun) / 1000).toFixed(1)} s | ${note ?? ''} |`)
  return value
}

function megabytes(place) {
  const bytes = statSync(place).isDirectory()
    ? readdirSync(place, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0)
    : statSync(place).size
  return `${(bytes / 1e6).toFixed(1)} MB`
}

console.log('| step | time | |\n|---|---|---|')
const clone = path.join(home, 'clone')
const files = made === undefined ? path.join(home, 'release') : path.resolve(made)
await step('tag and make the release', () => {
  if (made !== undefined) return { note: 'made before' }
  run(home, 'git', ['clone', '--quiet', '--no-hardlinks', root, clone])
  for (const [name, value] of [
    ['user.name', 'Rehearsal'],
    ['user.email', 'rehearsal@example.com'],
  ]) {
    run(clone, 'git', ['config', name, value])
  }
  run(clone, 'node', ['scripts/tag-release.mjs', VERSION])
  run(clone, 'git', ['checkout', '--quiet', `v${VERSION}`])
  run(clone, 'node', ['scripts/install.mjs', '--all'])
  run(clone, 'node', ['scripts/release.mjs', files])
  return { note: `${readdirSync(files).length} files, ${megabytes(files)}` }
})
const packed = (form) =>
  path.join(
    files,
    readdirSync(files).find((name) => form.test(name)),
  )

const npm = await step('npm registry starts', async () => {
  const folder = path.join(root, '.cache/rehearsal-npm')
  if (!existsSync(path.join(folder, 'node_modules'))) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(path.join(folder, 'package.json'), JSON.stringify(VERDACCIO))
    run(folder, 'npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'])
  }
  const upstream = run(home, 'npm', ['config', 'get', 'registry']).trim()
  const port = await freePort()
  const anybody = { access: '$all', publish: '$anonymous' }
  const config = {
    storage: path.join(home, 'npm-storage'),
    uplinks: { upstream: { url: upstream } },
    packages: { tacho: anybody, '@tacho/*': anybody, '**': { access: '$all', proxy: 'upstream' } },
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
  }
  // JSON is valid YAML.
  writeFileSync(path.join(home, 'verdaccio.yaml'), JSON.stringify(config))
  const url = `http://127.0.0.1:${port}/`
  await serve(
    path.join(folder, 'node_modules/.bin/verdaccio'),
    ['-c', path.join(home, 'verdaccio.yaml'), '-l', `127.0.0.1:${port}`],
    `${url}-/ping`,
  )
  return { value: url }
})
const npmrc = `registry=${npm}\n${npm.replace('http:', '')}:_authToken=rehearsal\n`
await step('npm publish', () => {
  const folder = project(home, 'publish', { '.npmrc': npmrc })
  for (const file of [packed(/^tacho-sdk-.*\.tgz$/), packed(/^tacho-\d.*\.tgz$/)])
    run(folder, 'npm', ['publish', '--access', 'public', file])
})

const tools = path.join(root, '.cache/rehearsal-python')
const pypi = await step('Python index starts', async () => {
  if (!existsSync(tools)) {
    run(home, 'python3', ['-m', 'venv', tools])
    run(home, path.join(tools, 'bin/python'), ['-m', 'pip', 'install', '-q', ...PYPISERVER])
  }
  const port = await freePort()
  const store = path.join(home, 'pypi-storage')
  mkdirSync(store)
  const url = `http://127.0.0.1:${port}/`
  await serve(
    path.join(tools, 'bin/pypi-server'),
    ['run', '-i', '127.0.0.1', '-p', String(port), '-P', '.', '-a', '.', '--disable-fallback', store],
    url,
  )
  return { value: url }
})
await step('twine upload', () => {
  const credentials = { TWINE_USERNAME: 'rehearsal', TWINE_PASSWORD: 'rehearsal' }
  const args = ['upload', '--non-interactive', '--disable-progress-bar', '--repository-url', pypi]
  run(home, path.join(tools, 'bin/twine'), [...args, packed(/\.whl$/), packed(/^tacho_sdk.*\.gz$/)], credentials)
})

const server = await step('the server from npm', () => {
  const folder = project(home, 'server', { '.npmrc': npmrc, 'package.json': '{"private":true}' })
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', 'tacho'])
  return { note: megabytes(path.join(folder, 'node_modules')), value: folder }
})
const tacho = path.join(server, 'node_modules/.bin/tacho')
const port = await freePort()
const url = `http://127.0.0.1:${port}`
const credentials = path.join(home, 'credentials')
const output = await step('tacho serve', async () => {
  const env = {
    TACHO_DATA_DIR: path.join(home, 'data'),
    TACHO_PORT: String(port),
    TACHO_INIT_CREDENTIALS_FILE: credentials,
  }
  const { output: said } = await serve(tacho, ['serve'], `${url}/readyz`, { cwd: server, env })
  return { note: run(server, tacho, ['version']).trim(), value: said }
})
const text = readFileSync(credentials, 'utf8')
const [apiKey] = /tacho_[0-9a-f]{16}_[0-9a-f]{64}/.exec(text)
const [token] = /tacho-operator_[0-9a-f]+_[0-9a-f]+/.exec(text)
const agent = { TACHO_URL: url, TACHO_API_KEY: apiKey }

const typescript = await step('the SDK from npm', () => {
  const folder = project(home, 'typescript', {
    '.npmrc': npmrc,
    'package.json': '{"private":true,"type":"module"}',
    'agent.ts': TYPESCRIPT,
  })
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', '@tacho/sdk'])
  return { note: megabytes(path.join(folder, 'node_modules')), value: folder }
})
const compile = [
  'agent.ts',
  '--strict',
  '--target',
  'es2022',
  '--module',
  'nodenext',
  '--outDir',
  'out',
  '--types',
  'node',
  '--typeRoots',
  path.join(root, 'node_modules/@types'),
]
await step('tsc', () => void run(typescript, path.join(root, 'node_modules/.bin/tsc'), compile))

const runs = []
const folders = [
  path.dirname(process.execPath),
  ...(process.env.REHEARSE_RUNTIMES ?? '').split(path.delimiter).filter(Boolean),
]
for (const { program, args } of [
  { program: 'node', args: [] },
  { program: 'bun', args: [] },
  { program: 'deno', args: ['run', '-A'] },
]) {
  for (const folder of folders.filter((one) => existsSync(path.join(one, program)))) {
    const version = run(home, path.join(folder, program), ['--version']).split('\n')[0].replace(/ \(.*/, '')
    const name = `${program} ${version.replace(/^deno /, '')}`
    await step(`a run: ${name}`, () => {
      runs.push(name)
      return { note: run(typescript, path.join(folder, program), [...args, 'out/agent.js', name], agent).trim() }
    })
  }
}
const pythons =
  process.env.REHEARSE_PYTHONS?.split(path.delimiter) ?? [10, 11, 12, 13, 14].map((minor) => `python3.${minor}`)
for (const python of pythons) {
  const { status, stdout } = spawnSync(python, ['--version'], { encoding: 'utf8' })
  if (status !== 0) {
    console.log(`| ${python} | | not here |`)
    continue
  }
  const name = stdout.trim()
  const folder = project(home, name.replace(' ', '-'), { 'agent.py': PYTHON })
  const own = path.join(folder, 'venv')
  await step(`the SDK from PyPI: ${name}`, () => {
    run(folder, python, ['-m', 'venv', own])
    run(folder, path.join(own, 'bin/pip'), [
      'install',
      '-q',
      '--disable-pip-version-check',
      '--index-url',
      `${pypi}simple/`,
      'tacho-sdk',
    ])
  })
  await step(`a run: ${name}`, () => {
    runs.push(name)
    return { note: run(folder, path.join(own, 'bin/python'), ['-W', 'error', 'agent.py', name], agent).trim() }
  })
}
await step('tacho runs list', () => {
  const listed = run(server, tacho, ['runs', 'list', '--json', '--limit', '50'], {
    TACHO_URL: url,
    TACHO_OPERATOR_TOKEN: token,
  })
  const stored = JSON.parse(listed).items.map(({ runId, status, events }) => [runId, status, events])
  const missing = runs.filter((name) => !stored.some(([runId, status]) => runId === name && status === 'COMPLETED'))
  if (missing.length > 0) throw new Error(`not stored: ${missing.join(', ')}\n${listed}\n${output()}`)
  return { note: `${stored.length} runs` }
})
process.exit()
