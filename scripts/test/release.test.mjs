/** The contents of a release, and the workflows that make it. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse, parseAllDocuments } from 'yaml'
import { packChart, templates } from '../pack-chart.mjs'
import { pythonVersion } from '../pack-python.mjs'
import { changesOf, checkPackages, makeRelease } from '../release.mjs'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file) => readFileSync(path.join(ROOT, file), 'utf8')
const { version: next } = JSON.parse(read('package.json'))

function temporary(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'tacho-release-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

test('a release has all packages, small enough and accepted by the tools of the registries', async (t) => {
  const folder = path.join(temporary(t), 'release')
  const packages = await makeRelease(folder)
  for (const line of checkPackages(packages)) t.diagnostic(line)

  const inside = (archive, file) =>
    execFileSync('tar', ['-xOzf', archive, file], { encoding: 'utf8', maxBuffer: 2 ** 26 })
  const { version } = JSON.parse(inside(packages.server, 'package/package.json'))
  assert.match(version, new RegExp(`^${next.replaceAll('.', '\\.')}(?:$|-dev\\+[\\w.]+$)`))
  assert.equal(JSON.parse(inside(packages.sdk, 'package/package.json')).version, version)
  const source = path.basename(packages.sdist, '.tar.gz')
  assert.equal(source, `tacho_sdk-${pythonVersion(version)}`)
  assert.match(inside(packages.sdist, `${source}/PKG-INFO`), /^License-File: LICENSE$/m)
  assert.match(inside(packages.chart, 'tacho/Chart.yaml'), new RegExp(`^version: ${version.replace('+', '\\+')}$`, 'm'))
  assert.match(inside(packages.server, 'package/packages/cli/dist/THIRD-PARTY-LICENSES'), /^fastify \d/m)
  assert.deepEqual(JSON.parse(readFileSync(path.join(folder, 'newest.json'), 'utf8')), { version })

  const sums = readFileSync(path.join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n')
  assert.deepEqual(
    sums.map((line) => line.slice(66)).toSorted(),
    readdirSync(folder)
      .filter((name) => name !== 'SHA256SUMS')
      .toSorted(),
  )
  for (const line of sums) {
    const content = readFileSync(path.join(folder, line.slice(66)))
    assert.equal(createHash('sha256').update(content).digest('hex'), line.slice(0, 64))
  }
  const components = (file) => JSON.parse(readFileSync(`${file}.cdx.json`, 'utf8')).components.map(({ name }) => name)
  const ofServer = components(packages.server)
  for (const name of ['fastify', 'better-sqlite3', 'react', '@bufbuild/re2']) assert.ok(ofServer.includes(name), name)
  for (const name of ['typescript', 'oxlint', 'playwright-core', '@scarf/scarf'])
    assert.ok(!ofServer.includes(name), name)
  assert.deepEqual(components(packages.sdk), ['@bufbuild/re2', '@noble/hashes', 'canonicalize'])
  assert.deepEqual(components(packages.wheel), [])
})

test('the changes of a version are those under its heading', () => {
  const changelog =
    '# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.2.0 (2026-12-01)\n\n- Second.\n\n## 0.1.0\n\n- First.\n'
  assert.equal(changesOf('0.3.0-dev+23c70e77', changelog), '- New.')
  assert.equal(changesOf('0.2.0', changelog), '- Second.')
  assert.equal(changesOf('0.1.0', changelog), '- First.')
  assert.throws(() => changesOf('0.4.0', changelog), /no heading "## 0.4.0"/)
})

/** Renders the templates with the default values. Supports only the parts of the template language that they use. */
function rendered(text) {
  const Values = parse(read('examples/kubernetes/chart/values.yaml'))
  const valueOf = (name) => name.split('.').reduce((value, key) => value[key], Values)
  return text
    .replaceAll(/^.*\{\{- (?:if|with|range|end|toYaml)\b[^\n]*\n(?:.*\{\{ (?:toJson \.|\$name) .*\n)?/gm, '')
    .replaceAll(/^.*helm\.sh\/hook.*\n| {2}annotations:\n(?= {4}helm)/gm, '')
    .replaceAll('{{ .Values.image.tag | default .Chart.AppVersion }}', next)
    .replaceAll('{{ (urlParse .Values.publicUrl).host }}', new URL(Values.publicUrl).host)
    .replaceAll('{{ .Release.Name }}', 'tacho')
    .replaceAll(/\{\{ toJson \.Values\.([\w.]+) \}\}/g, (_, name) => JSON.stringify(valueOf(name)))
    .replaceAll(/\{\{ \.Values\.([\w.]+) \}\}/g, (_, name) => valueOf(name))
}

const objects = (text) =>
  parseAllDocuments(text)
    .map((document) => document.toJS())
    .filter(Boolean)

test('by default, the chart has the objects of examples/kubernetes', () => {
  for (const [name, text] of Object.entries(templates())) {
    const filled = rendered(text)
    assert.doesNotMatch(filled, /\{\{/, name)
    assert.deepEqual(objects(filled), objects(read(`examples/kubernetes/${name}`)), name)
  }
  const used = Object.values(templates()).join('')
  for (const [name, group] of Object.entries(parse(read('examples/kubernetes/chart/values.yaml')))) {
    const keys =
      typeof group === 'object' && Object.keys(group).length > 0
        ? Object.keys(group).map((key) => `${name}.${key}`)
        : [name]
    for (const key of keys) assert.ok(used.includes(`.Values.${key}`), `no template uses ${key}`)
  }
})

const helm = spawnSync('helm', ['version', '--short']).status === 0
test('Helm renders the chart, with other values too', { skip: !helm && 'Helm is not installed.' }, (t) => {
  const chart = packChart(temporary(t))
  const render = (...args) => {
    const output = execFileSync('helm', ['template', 'tacho', chart, '--kube-version', '1.35', ...args], {
      encoding: 'utf8',
    })
    return objects(output)
  }
  const kinds = (all) => all.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted()
  const examples = ['tacho.yaml', 'migrate.yaml'].flatMap((name) => objects(read(`examples/kubernetes/${name}`)))
  assert.deepEqual(kinds(render()), kinds(examples))
  const [pod] = render(
    '--set=publicUrl=https://agents.example.org,image.tag=9.9.9,image.pullSecrets[0].name=mine,env.TACHO_LOG_LEVEL=warn',
    '--set=ingress.enabled=false,networkPolicy.enabled=false,migrate.enabled=false',
  ).filter(({ kind }) => kind === 'Deployment')
  const { imagePullSecrets, containers } = pod.spec.template.spec
  assert.deepEqual(imagePullSecrets, [{ name: 'mine' }])
  assert.equal(containers[0].image, 'registry.example.com/tacho:9.9.9')
  const variables = Object.fromEntries(containers[0].env.map(({ name, value }) => [name, value]))
  assert.deepEqual([variables.TACHO_PUBLIC_URL, variables.TACHO_LOG_LEVEL], ['https://agents.example.org', 'warn'])
})

/** The commands of a workflow. */
function commandsOf(file) {
  const workflow = parse(read(file))
  const jobs = Object.values(workflow.jobs ?? workflow).filter((job) => typeof job === 'object' && !Array.isArray(job))
  return jobs.flatMap((job) => [...(job.steps ?? []).flatMap(({ run }) => run ?? []), ...(job.script ?? [])])
}

test('both systems run the same commands, which exist', () => {
  const github = [...commandsOf('.github/workflows/test.yml'), ...commandsOf('.github/workflows/release.yml')]
  const gitlab = commandsOf('.gitlab-ci.yml')
  for (const command of ['npm test', 'npm run release -- release']) {
    assert.ok(github.includes(command) && gitlab.includes(command), command)
  }
  for (const commands of [github, gitlab]) {
    assert.ok(commands.some((command) => command.endsWith('&& node scripts/neighbours.mjs release former; fi')))
  }
  const publish = github.filter((command) => command.includes('npm publish'))
  assert.deepEqual(
    gitlab.filter((command) => command.includes('npm publish')),
    publish,
  )
  const { scripts } = JSON.parse(read('package.json'))
  const dockerfile = read('Dockerfile')
  for (const command of [...github, ...gitlab]) {
    for (const [, name] of command.matchAll(/npm run ([\w-]+)/g)) assert.ok(name in scripts, command)
    for (const [, name] of command.matchAll(/--build-arg (\w+)=/g))
      assert.match(dockerfile, new RegExp(`^ARG ${name}$`, 'm'))
  }
})

test('the image: each file that it copies exists, and it runs as nobody special', () => {
  const text = read('Dockerfile')
  const stages = text.split(/^FROM /m).slice(1)
  assert.equal(stages.length, 3)
  const ignored = read('.dockerignore').split('\n')
  for (const [, sources] of text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const source of sources.split(' ')) {
      assert.ok(source === '.' || existsSync(path.join(ROOT, source)), source)
      assert.ok(!ignored.includes(source), `${source} is in .dockerignore`)
    }
  }
  for (const [, stage, source] of text.matchAll(/^COPY --from=(\w+) (\S+)/gm)) {
    const [, made] = stages.map((one) => one.split('\n')).find(([first]) => first.endsWith(` AS ${stage}`)) ?? []
    assert.ok(made !== undefined && text.includes(stage === 'build' ? `mkdir ${source}` : '--prefix /app'), source)
  }
  const inPackage = /"\/app\/node_modules\/tacho\/([^"]+)"/g
  for (const [, file] of stages[2].matchAll(inPackage)) {
    assert.ok(file === 'packages/cli/dist/main.js' || existsSync(path.join(ROOT, file)), file)
  }
  for (const [, script] of text.matchAll(/node (scripts\/\S+)/g)) assert.ok(existsSync(path.join(ROOT, script)), script)
  const last = stages[2]
  for (const line of [/^USER node$/m, /^HEALTHCHECK /m, /^VOLUME \/data$/m, /^EXPOSE 4680$/m, /^ENTRYPOINT \["/m])
    assert.match(last, line)
  assert.ok(last.indexOf('USER node') > last.indexOf('RUN '), 'nothing runs as root in the end')
})
