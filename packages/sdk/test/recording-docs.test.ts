/** The pages of docs/sdk about recording: all code runs, and nothing is undocumented. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { startScriptedServer } from './scripted-server.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PAGES = ['README', 'recording', 'delivery', 'options', 'serverless']
const run = promisify(execFile)
const page = (name: string): string => readFileSync(path.join(ROOT, 'docs/sdk', `${name}.md`), 'utf8')
const source = (name: string): string => readFileSync(path.join(ROOT, 'packages/sdk/src', name), 'utf8')

test('all code in the pages is typed correctly, runs, and records', async (t) => {
  const server = await startScriptedServer()
  // Inside the repository, so that its packages are found.
  mkdirSync(path.join(ROOT, '.cache'), { recursive: true })
  const folder = mkdtempSync(path.join(ROOT, '.cache/docs-'))
  t.after(async () => {
    rmSync(folder, { recursive: true, force: true })
    await server.close()
  })
  const files = PAGES.flatMap((name) =>
    [...page(name).matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = ''], index) => {
      const file = path.join(folder, `${name}-${index}.ts`)
      writeFileSync(file, code)
      return file
    }),
  )
  assert.ok(files.length >= 8)
  const settings = { extends: path.join(ROOT, 'tsconfig.base.json'), include: ['*.ts'] }
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify(settings))
  const env = { ...process.env, TACHO_API_KEY: 'key', TACHO_URL: server.url }
  await run(process.execPath, [path.join(ROOT, 'node_modules/.bin/tsc'), '-p', folder, '--checkers', '1'], {
    cwd: ROOT,
  }).catch(({ stdout }: { stdout: string }) => assert.fail(stdout))
  for (const file of files) {
    const before = server.events().length
    const { stderr } = await run(process.execPath, [file], { env })
    assert.equal(stderr, '', path.basename(file))
    const isRecorded = server.events().length > before
    // A platform calls the module with a default export.
    const isCalled = !/spool|^export default/m.test(readFileSync(file, 'utf8'))
    assert.ok(isRecorded || !isCalled, `${path.basename(file)} records nothing`)
  }
  const shown = JSON.stringify(server.events())
  assert.doesNotMatch(shown, /Ada|ada@example|CASE-12/)
  for (const type of ['USER_INPUT', 'AGENT_STEP', 'LLM_CALL', 'TOOL_CALL', 'ERROR', 'SESSION_OUTCOME', 'HANDOVER']) {
    assert.ok(shown.includes(`"${type}"`), type)
  }
})

test('every option, counter, reason and diagnostic is described', () => {
  const names = (text: string, from: string): string[] => {
    const body = text.slice(text.indexOf(from), text.indexOf('\n}', text.indexOf(from)))
    return [...body.matchAll(/^ {2}(?:readonly )?(\w+)\??:/gm)].map(([, name = '']) => name)
  }
  const options = names(source('options.ts'), 'export interface TachoOptions')
  assert.ok(options.length > 20)
  for (const option of options) assert.ok(page('options').includes(`\`${option}\``), option)
  for (const option of names(source('recording/mask.ts'), 'export interface MaskingOptions')) {
    assert.ok(page('options').includes(`\`${option}\``), option)
  }

  const delivery = page('delivery')
  const diagnostics = source('delivery/diagnostics.ts')
  for (const counter of names(diagnostics, 'export interface Counters'))
    assert.ok(delivery.includes(`\`${counter}\``), counter)
  const reasons = [...diagnostics.matchAll(/^ {2}\| '(\w+)'$/gm)].map(([, reason = '']) => reason)
  assert.ok(reasons.length >= 9)
  const files = globSync('**/*.ts', { cwd: path.join(ROOT, 'packages/sdk/src') }).map(source)
  const codes = files.flatMap((text) =>
    [...text.matchAll(/report\(\s*'(?:info|warning|error)',\s*'(\w+)'/g)].map(([, code = '']) => code),
  )
  assert.ok(codes.length >= 15)
  for (const name of [...reasons, ...codes]) assert.ok(delivery.includes(`\`${name}\``), name)
})

test('metadata-only keeps the keys that the guide names', () => {
  const [, keys = ''] =
    /const METADATA_KEYS[^(]*\(\s*\(?([\s\S]*?)\)?\.split/.exec(source('recording/metadata.ts')) ?? []
  const kept = keys.match(/\w+/g) ?? []
  assert.ok(kept.length > 15)
  for (const key of kept.filter((name) => name !== 'sampleRate'))
    assert.ok(page('recording').includes(`\`${key}\``), key)
})
