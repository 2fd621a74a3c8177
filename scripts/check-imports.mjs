// Checks that imports run one way: contract <- policy <- server <- cli, contract <- client <- cli | console, and policy
// <- sdk | console; inside the server http | jobs -> domain -> storage -> contract. Every layer has the same rooms, and
// beside them only its entry file. storage/storage.ts takes its methods from the types of the acts in storage/sql.
// Exported functions of the server must have different names, and source files at most 400 lines. A table of allowed
// imports is easier to read than lint rules of forbidden ones. oxlint finds import cycles.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const contract = 'packages/contract/src/**'
const policy = 'packages/policy/src/**'
const client = 'packages/client/src/**'
const mcp = 'packages/mcp/src/**'
const server = 'packages/server/src'
const sdk = 'packages/sdk/src'
// The nouns, and the machinery: `web` is HTTP or the frame of a page, `engine` is what the nouns are built from.
const rooms = [
  'record',
  'runs',
  'approvals',
  'policies',
  'issues',
  'people',
  'tenants',
  'messages',
  'data',
  'web',
  'engine',
]
const inRooms = (folder) => `${folder}/{${rooms.join()}}/**`
const storage = `${server}/storage`
// Definitions of what tables contain, for all layers. Their rules are in domain, their statements in storage/sql.
const rows = `{${storage}/storage.ts,${inRooms(storage)}}`
const http = `${server}/http`
const publicSide = `${http}/{record/!(operator-*),runs/runs,approvals/approval{s,-feed,-reader},policies/{runtime-config,configuration-c*},issues/issue-records,tenants/{api-key,credential-cache,rate-limit},web/!(operator-*|mcp|doctor)}.ts`
// The parts of the contract that storage may load. Each of its threads would load the schema library's hundreds of
// files again.
const contractWords = ['engine/limits', 'engine/words', 'runs/run-filters', 'runs/score-filter'].map(
  (name) => `packages/contract/src/${name}.ts`,
)
// Any layer may run a thread, and find files of this program.
const threads = `${server}/{threads,program}/**`
// Estimates, for replies and for alerts.
const prices = `${server}/prices/**`
const anyPackage = ['npm/**', 'node/**']

// The first row whose folder matches a file applies. `may`: allowed imports. `not` overrides `may`. `loads`: if set, all other
// imports must be of types only.
const layers = [
  { folder: contract, may: [contract, 'npm/typebox'] },
  { folder: policy, may: [contract, policy, 'npm/**'] },
  // Only types of the contract: a test of the client checks that none of its code is loaded.
  { folder: client, may: [contract, client, 'npm/eventsource-parser', 'npm/typebox'] },
  // The tools that models read. Like any other client, they use the operator API.
  { folder: mcp, may: [contract, policy, client, mcp, 'npm/@modelcontextprotocol/server'] },
  {
    folder: `${server}/domain/**`,
    may: [
      contract,
      policy,
      `${server}/domain/**`,
      rows,
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
    may: [contract, `${storage}/sql/**`, rows, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, ...anyPackage],
    not: ['npm/better-sqlite3', 'npm/pg', 'npm/fastify', 'npm/@fastify/*'],
  },
  ...['sqlite', 'postgres'].map((engine) => ({
    folder: `${storage}/${engine}/**`,
    may: [contract, `${storage}/${engine}/**`, `${storage}/sql/**`, rows, threads, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, threads, ...anyPackage],
    not: ['npm/fastify', 'npm/@fastify/*'],
  })),
  {
    folder: `${storage}/**`,
    may: [contract, `${storage}/**`, ...anyPackage],
    loads: [...contractWords, `${storage}/**`, ...anyPackage],
    not: ['npm/fastify', 'npm/@fastify/*'],
  },
  // The MCP endpoint. Its tools use the operator API.
  {
    folder: `${http}/web/mcp-answer.ts`,
    may: [client, mcp, 'npm/@modelcontextprotocol/server', 'npm/fastify'],
  },
  // The public side must not import the operator side: neither its rooms nor its files.
  side(`${http}/web/deps.ts`, `${http}/**`),
  side(publicSide, `${http}/{record,runs,approvals,policies,issues,tenants,web}/!(operator-*).ts`),
  side(`${http}/**`, `${http}/**`),
  side(`${server}/jobs/**`, `${server}/jobs/**`, ['npm/fastify', 'npm/@fastify/*']),
  {
    folder: prices,
    may: [contract, prices, threads, `${server}/domain/**`, rows, ...anyPackage],
    not: ['npm/better-sqlite3', 'npm/pg', 'npm/fastify', 'npm/@fastify/*'],
  },
  // Every layer loads these, so they must not import a layer.
  { folder: threads, may: [threads, 'node/**'] },
  { folder: `${server}/config/**`, may: [contract, `${server}/config/**`, `${server}/domain/**`, ...anyPackage] },
  {
    folder: `${server}/maintenance/**`,
    may: [contract, `${server}/{maintenance,config,domain,program}/**`, `${storage}/**`, ...anyPackage],
  },
  { folder: `${server}/**`, may: [contract, policy, `${server}/**`, ...anyPackage] },
  // The console is a client like any other, except that a page loads no schemas.
  {
    folder: 'packages/console/src/**',
    may: [contract, client, policy, 'packages/console/src/**', 'npm/**'],
    not: ['npm/typebox'],
  },
  // The SDK has no dependencies. Its policy part is bundled with its packages and loaded on first use.
  { folder: `${sdk}/policies.ts`, may: [contract, policy, `${sdk}/**`, 'node/**'] },
  { folder: `${sdk}/**`, may: [`${sdk}/**`, 'node/**'] },
  // Guards for MCP and coding agents. They use Tacho only through the SDK, and decide with policies as the SDK does.
  {
    folder: 'packages/guards/src/**',
    // The proxy reads model answers like the integrations.
    may: [
      policy,
      sdk,
      `${sdk}/integrations/**`,
      `${sdk}/{border,core}.ts`,
      `${sdk}/recording/context.ts`,
      'packages/guards/src/**',
      'npm/@modelcontextprotocol/client',
      'node/**',
    ],
  },
  // Tests SDKs of any language through the public interface only.
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
      // The SDK's rules for delivery: what a reply means, and when to retry.
      `${sdk}/delivery/{answer,retry}.ts`,
      // For tapes: the effect of masks, the form of messages, and the in-memory service of a replay.
      `${sdk}/{recording/mask,integrations/messages,testing/fake-service,guard/rules}.ts`,
      'packages/cli/src/**',
      `${server}/process/serve.ts`,
      `${server}/program/program.ts`,
      `${server}/config/config.ts`,
      `${server}/maintenance/**`,
      // The format of exports, which both sides write and check.
      `${server}/domain/data/export-lines.ts`,
      // The differences between versions, in the server's form.
      `${server}/domain/policies/diff.ts`,
      // The warning about labels: a file can also change them, so a simulation cannot give it.
      `${server}/domain/policies/policy.ts`,
      // The cost of replays, counted and estimated as in the server.
      `${server}/{prices/price-table,domain/record/usage,storage/runs/usage}.ts`,
      // The reader of spans, so that imported spans become the same events.
      `${server}/domain/record/otlp/*.ts`,
      ...anyPackage,
    ],
  },
]

/** Rules for a side of the server. `own`: the files of that side which it may import. */
function side(folder, own, not = []) {
  const may = [contract, policy, own, `${server}/domain/**`, rows, `${server}/config/config.ts`, prices, threads]
  return { folder, may: [...may, ...anyPackage], not: ['npm/better-sqlite3', 'npm/pg', ...not] }
}

const root = fileURLToPath(new URL('..', import.meta.url))
// `from '…'`, `import '…'` and `import('…')`, also of types, at the start of a line or in an expression.
const specifier = /(?:\bfrom|\bimport)\s*\(?\s*(['"])([^'"\n\s,][^'"\n]*)\1/g
const matches = (target, globs = []) => globs.some((glob) => path.matchesGlob(target, glob))
let wrong = 0

for (const file of globSync('packages/*/src/**/*.{ts,tsx}', { cwd: root })) {
  const layer = layers.find(({ folder }) => path.matchesGlob(file, folder))
  // A new package needs a rule above before it may import anything.
  const source = readFileSync(path.join(root, file), 'utf8')
  for (const { 2: name, index } of source.matchAll(specifier)) {
    const target = resolve(file, name)
    const allowed = layer && matches(target, layer.may) && !matches(target, layer.not)
    if (allowed && (layer.loads === undefined || matches(target, layer.loads) || isType(source, index))) continue
    wrong++
    console.error(`${file}: may not import ${name}${allowed ? ', but for its types' : ''}`)
  }
}

// An exported name must identify one function without its file. The engines are an exception: they have the same
// functions in the same files.
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

const FILES_MAX = 24
const layersWithRooms = [
  ['packages/contract/src', 'packages/contract/src'],
  ['packages/cli/src', 'packages/cli/src/main.ts'],
  ['packages/console/src', 'packages/console/src/{main.tsx,service-worker/*}'],
  [http, ''],
  [`${server}/domain`, ''],
  [`${server}/jobs`, ''],
  [storage, `${storage}/{storage.ts,sqlite/*,postgres/*,copy/*,sql/**}`],
  [`${storage}/sql`, `${storage}/sql/acts.ts`],
]
for (const [folder, entries] of layersWithRooms) {
  const perFolder = new Map()
  for (const file of globSync(`${folder}/**/*.{ts,tsx}`, { cwd: root })) {
    perFolder.set(path.dirname(file), (perFolder.get(path.dirname(file)) ?? 0) + 1)
    if (path.matchesGlob(file, inRooms(folder)) || path.matchesGlob(file, entries)) continue
    wrong++
    console.error(`${file}: lies in no room. Rooms: ${rooms.join(', ')}`)
  }
  for (const [name, files] of perFolder) {
    if (files <= FILES_MAX) continue
    wrong++
    console.error(`${name}: ${files} files, more than ${FILES_MAX}`)
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

/** Whether TypeScript erases the import whose `from` is at `index`. */
function isType(source, index) {
  return /^(?:im|ex)port type [^'"]*$/m.test(
    source.slice(source.lastIndexOf('\n', source.lastIndexOf('port type ', index)) + 1, index),
  )
}

function resolve(file, name) {
  if (name.startsWith('.')) return path.join(path.dirname(file), name)
  // The SDK's part for hosts that have a process.
  if (name === '#process') return `${sdk}/process/node.ts`
  if (name === '#whole') return `${sdk}/process/whole.ts`
  if (name.startsWith('node:')) return name.replace(':', '/')
  if (name.startsWith('@tacho/')) return name.replace(/^@tacho\/([^/]+)/, 'packages/$1/src')
  return `npm/${name.split('/', name.startsWith('@') ? 2 : 1).join('/')}`
}
