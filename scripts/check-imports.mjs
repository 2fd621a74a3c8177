// Imports run one way: contract <- policy <- server <- cli, contract <- client <- cli | console, and policy <- sdk | console; inside the server http | jobs -> domain -> storage/*.ts -> contract. storage/storage.ts takes its methods from the types of the acts in storage/sql.
// Exported functions of the server have different names, and source files at most 400 lines. A table of allowed imports is easier to read than lint rules of forbidden ones. oxlint finds import cycles.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const contract = 'packages/contract/src/**'
const policy = 'packages/policy/src/**'
const client = 'packages/client/src/**'
const mcp = 'packages/mcp/src/**'
const server = 'packages/server/src'
const sdk = 'packages/sdk/src'
const storage = `${server}/storage`
// What storage loads of the contract. Each of its threads would load the schema library's hundreds of files again.
const contractWords = ['limits', 'score-filter', 'words'].map((name) => `packages/contract/src/${name}.ts`)
// Any layer may run a thread, and finds files of this program.
const threads = `${server}/{threads,program}/**`
// Estimates, for replies and for alerts.
const prices = `${server}/prices/**`
const anyPackage = ['npm/**', 'node/**']

// The first folder that matches a file decides. `not` overrides `may`. `loads`, where given, is all that
// may be imported other than as a type.
const layers = [
  { folder: contract, may: [contract, 'npm/typebox'] },
  { folder: policy, may: [contract, policy, 'npm/**'] },
  // Only types of the contract: a test of the client checks that none of its code is loaded.
  { folder: client, may: [contract, client, 'npm/eventsource-parser', 'npm/typebox'] },
  // What models read, by the operator API as any other client.
  { folder: mcp, may: [contract, policy, client, mcp, 'npm/@modelcontextprotocol/server'] },
  {
    folder: `${server}/domain/**`,
    may: [
      contract,
      policy,
      `${server}/domain/**`,
      `${storage}/*.ts`,
      'npm/@bufbuild/protobuf',
      'npm/diff',
      'npm/typebox',
      'node/crypto',
      'node/util',
      'node/buffer',
    ],
  },
  {
    folder: `${storage}/sql/**`,
    may: [contract, `${storage}/sql/**`, `${storage}/*.ts`, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, ...anyPackage],
    not: ['npm/better-sqlite3', 'npm/pg', 'npm/fastify', 'npm/@fastify/*'],
  },
  ...['sqlite', 'postgres'].map((engine) => ({
    folder: `${storage}/${engine}/**`,
    may: [contract, `${storage}/${engine}/**`, `${storage}/sql/**`, `${storage}/*.ts`, threads, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, threads, ...anyPackage],
    not: ['npm/fastify', 'npm/@fastify/*'],
  })),
  {
    folder: `${storage}/**`,
    may: [contract, `${storage}/**`, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, ...anyPackage],
    not: ['npm/fastify', 'npm/@fastify/*'],
  },
  // The operator API builds on the files of http, which do not know it. deps.ts lists what all routes need.
  side(`${server}/http/deps.ts`, `${server}/http/**`),
  // Answers models with the tools of the MCP server, which read by the operator API.
  {
    folder: `${server}/http/operator/mcp-answer.ts`,
    may: [client, mcp, 'npm/@modelcontextprotocol/server', 'npm/fastify'],
  },
  side(`${server}/http/operator/**`, `${server}/http/**`),
  side(`${server}/http/*.ts`, `${server}/http/*.ts`),
  side(`${server}/jobs/**`, `${server}/jobs/**`, ['npm/fastify', 'npm/@fastify/*']),
  {
    folder: prices,
    may: [contract, prices, threads, `${server}/domain/**`, `${storage}/*.ts`, ...anyPackage],
    not: ['npm/better-sqlite3', 'npm/pg', 'npm/fastify', 'npm/@fastify/*'],
  },
  // Every layer loads these, so they import none.
  { folder: threads, may: [threads, 'node/**'] },
  { folder: `${server}/config/**`, may: [contract, `${server}/config/**`, `${server}/domain/**`, ...anyPackage] },
  {
    folder: `${server}/maintenance/**`,
    may: [contract, `${server}/{maintenance,config,domain,program}/**`, `${storage}/**`, ...anyPackage],
  },
  { folder: `${server}/**`, may: [contract, policy, `${server}/**`, ...anyPackage] },
  // A client like any other, but a page loads no schemas.
  {
    folder: 'packages/console/src/**',
    may: [contract, client, policy, 'packages/console/src/**', 'npm/**'],
    not: ['npm/typebox'],
  },
  // The SDK has no dependencies. Its policy part is bundled with its packages and loaded on first use.
  { folder: `${sdk}/policies.ts`, may: [contract, policy, `${sdk}/**`, 'node/**'] },
  { folder: `${sdk}/**`, may: [`${sdk}/**`, 'node/**'] },
  // Guards for MCP and coding agents: a client by the SDK alone. They decide with the policies as the SDK does.
  {
    folder: 'packages/guards/src/**',
    may: [policy, sdk, 'packages/guards/src/**', 'npm/@modelcontextprotocol/client', 'node/**'],
  },
  // Tests SDKs of any language through the interface alone.
  { folder: 'packages/sdk-conformance/src/**', may: ['packages/sdk-conformance/src/**', 'node/**'] },
  // Scripted models for tests with real frameworks.
  { folder: 'packages/sdk-integrations/src/**', may: ['packages/sdk-integrations/src/**', 'node/**'] },
  {
    folder: 'packages/cli/src/**',
    may: [
      contract,
      client,
      policy,
      mcp,
      'packages/guards/src/**',
      // The SDK's rules of delivery: what an answer means, and when to try again.
      `${sdk}/{answer,retry}.ts`,
      `${server}/program/version.ts`,
      'packages/cli/src/**',
      `${server}/process/serve.ts`,
      `${server}/program/root.ts`,
      `${server}/config/config.ts`,
      `${server}/maintenance/**`,
      // The format of exports, which both sides write and check.
      `${server}/domain/export-lines.ts`,
      // The differences of versions, as the server shows them.
      `${server}/domain/diff.ts`,
      // The reader of spans, so that imported ones become the same events.
      `${server}/domain/otlp/*.ts`,
      ...anyPackage,
    ],
  },
]

/** A side of the server: `own` are the files of the same side that it may import. */
function side(folder, own, not = []) {
  const may = [
    contract,
    policy,
    own,
    `${server}/domain/**`,
    `${storage}/*.ts`,
    `${server}/config/config.ts`,
    prices,
    threads,
  ]
  return { folder, may: [...may, ...anyPackage], not: ['npm/better-sqlite3', 'npm/pg', ...not] }
}

const root = fileURLToPath(new URL('..', import.meta.url))
// `from '…'`, `import '…'` and `import('…')`, also of types, at the start of a line or in an expression.
const specifier = /(?:\bfrom|\bimport)\s*\(?\s*(['"])([^'"\n\s,][^'"\n]*)\1/g
const matches = (target, globs = []) => globs.some((glob) => path.matchesGlob(target, glob))
let wrong = 0

for (const file of globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root })) {
  const layer = layers.find(({ folder }) => path.matchesGlob(file, folder))
  // A new package needs a row above before it may import anything.
  const source = readFileSync(path.join(root, file), 'utf8')
  for (const { 2: name, index } of source.matchAll(specifier)) {
    const target = resolve(file, name)
    const allowed = layer && matches(target, layer.may) && !matches(target, layer.not)
    if (allowed && (layer.loads === undefined || matches(target, layer.loads) || isType(source, index))) continue
    wrong++
    console.error(`${file}: may not import ${name}${allowed ? ', but for its types' : ''}`)
  }
}

// A name says which function is meant, without its file. The engines have the same functions in the same files.
const places = new Map()
const exported = /^export (?:(?:async )?function\*? (\w+)|const (\w+)(?:: [^=\n]+)? = (?:async )?\()/gm
for (const file of globSync(`${server}/**/*.ts`, { cwd: root })) {
  const place = file.replace(/storage\/(?:sqlite|postgres)\//, 'storage/<engine>/')
  for (const [, declared, assigned] of readFileSync(path.join(root, file), 'utf8').matchAll(exported)) {
    const name = declared ?? assigned
    const known = places.get(name) ?? place
    places.set(name, known)
    if (known === place) continue
    wrong++
    console.error(`${file}: ${name} is also a function of ${known}`)
  }
}

const LINES_MAX = 400
const generated = ['packages/client/src/endpoints/**', 'packages/server/src/domain/record/otlp/otlp_pb.ts']
for (const file of globSync(['{packages/*,bench}/src/**/*.{ts,tsx}', 'scripts/*.mjs', 'sdks/python/src/**/*.py'], {
  cwd: root,
})) {
  const lines = readFileSync(path.join(root, file), 'utf8').split('\n').length - 1
  if (lines <= LINES_MAX || matches(file, generated)) continue
  wrong++
  console.error(`${file}: ${lines} lines, more than ${LINES_MAX}`)
}
if (wrong > 0) process.exit(1)

/** Whether the import whose `from` is at `index` is erased. */
function isType(source, index) {
  return /^(?:im|ex)port type [^'"]*$/m.test(
    source.slice(source.lastIndexOf('\n', source.lastIndexOf('port type ', index)) + 1, index),
  )
}

function resolve(file, name) {
  if (name.startsWith('.')) return path.join(path.dirname(file), name)
  // The SDK's part for hosts with a process.
  if (name === '#process') return `${sdk}/process/node.ts`
  if (name.startsWith('node:')) return name.replace(':', '/')
  if (name.startsWith('@tacho/')) return name.replace(/^@tacho\/([^/]+)/, 'packages/$1/src')
  return `npm/${name.split('/', name.startsWith('@') ? 2 : 1).join('/')}`
}
