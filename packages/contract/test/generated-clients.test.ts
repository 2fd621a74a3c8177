/** Clients generated from the OpenAPI documents, run against the real service. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import openapiTypescript, { astToString } from 'openapi-typescript'
import { operatorDocument, publicDocument } from '../src/web/openapi.ts'
import { startService, type Service } from '../../server/test/setup/service.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PYTHON_GENERATOR = path.join(import.meta.dirname, 'python-generator.txt')

let service: Service
let directory: string
before(async () => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'tacho-generated-'))
  service = await startService()
})
after(async () => {
  rmSync(directory, { recursive: true })
  await service.close()
})

const DOCUMENTS = { public: publicDocument('1.0.0'), operator: operatorDocument('1.0.0') }

const TYPESCRIPT = `
import type { components, paths, webhooks } from './operator.d.ts'
import type { paths as PublicPaths } from './public.d.ts'
type Json<Operation extends { responses: { 200: { content: { 'application/json': unknown } } } }> =
  Operation['responses'][200]['content']['application/json']
const [url, token, key] = process.argv.slice(2)
const ask = async (path: string, headers: Record<string, string>) => (await fetch(url + path, { headers })).json()
const runs = (await ask('/openapi/v1/runs', { 'X-API-Key': key ?? '' })) as Json<PublicPaths['/runs']['get']>
const spaces: components['schemas']['WorkspacePage'] =
  (await ask('/operator/v1/workspaces', { Authorization: 'Bearer ' + token })) as Json<paths['/workspaces']['get']>
type Message = webhooks['approval.requested']['post']['requestBody']['content']['application/json']
const tool: Message['data']['toolName'] = 'refund'
// @ts-expect-error a page has no such member
void runs.nothing
console.log(runs.items.length, spaces.items[0]?.name, tool)
`

test('openapi-typescript generates types that compile and match the replies', { timeout: 900_000 }, async () => {
  for (const [name, content] of Object.entries(DOCUMENTS)) {
    const types = astToString(await openapiTypescript(JSON.stringify(content)))
    writeFileSync(path.join(directory, `${name}.d.ts`), types)
  }
  writeFileSync(path.join(directory, 'client.mts'), TYPESCRIPT)
  const project = {
    extends: path.join(ROOT, 'tsconfig.base.json'),
    compilerOptions: { typeRoots: [path.join(ROOT, 'node_modules/@types')], skipLibCheck: false },
    files: ['client.mts', 'public.d.ts', 'operator.d.ts'],
  }
  writeFileSync(path.join(directory, 'tsconfig.json'), JSON.stringify(project))
  await run(process.execPath, [path.join(ROOT, 'node_modules/.bin/tsc'), '-p', directory, '--checkers', '1']).catch(
    (error: { stdout: string }) => assert.fail(error.stdout),
  )
  const args = [path.join(directory, 'client.mts'), service.url, service.operatorToken, service.apiKey]
  assert.equal((await run(process.execPath, args)).stdout, '0 default refund\n')
})

const PYTHON = `
import sys, time
from operator_client.api.tenants import list_workspaces
from operator_client.client import AuthenticatedClient as Operator
from public_client.api.events import record_events
from public_client.api.runs import read_run
from public_client.client import AuthenticatedClient as Agent
from public_client.models import EventInput, Problem, RunStatus
url, token, key = sys.argv[1:]
agent = Agent(base_url=url + '/openapi/v1', token=key, prefix='', auth_header_name='X-API-Key')
event = EventInput(event_id='e', client_id='c', run_id='r', agent_name='a', event_type='AGENT_STEP', label='l',
                   timestamp=int(time.time() * 1000))
assert record_events.sync(client=agent, body=[event]).accepted == 1
assert read_run.sync('r', client=agent).status == RunStatus.RUNNING
missing = read_run.sync('nothing', client=agent)
assert isinstance(missing, Problem) and missing.code == 'not_found'
print(list_workspaces.sync(client=Operator(base_url=url + '/operator/v1', token=token)).items[0].name)
`

/** The folder of the installed generator, cached between runs; null if it cannot be installed. */
async function pythonGenerator(): Promise<string | null> {
  const found = await run('python3', ['--version']).catch(() => null)
  if (found === null) return null
  const pinned = createHash('sha256').update(found.stdout).update(readFileSync(PYTHON_GENERATOR)).digest('hex')
  const home = path.join(ROOT, '.cache', `python-generator-${pinned.slice(0, 16)}`)
  if (existsSync(home)) return home
  mkdirSync(path.dirname(home), { recursive: true })
  const fresh = mkdtempSync(`${home}-`)
  try {
    await run('python3', ['-m', 'venv', fresh])
    // Every version is pinned, so there is nothing to resolve.
    const install = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile', '--requirement', PYTHON_GENERATOR]
    await run(path.join(fresh, 'bin/python'), install)
    // Rename only a complete installation. Another test run may have done so first.
    renameSync(fresh, home)
  } catch {
    rmSync(fresh, { recursive: true, force: true })
  }
  return existsSync(home) ? home : null
}

test('openapi-python-client generates clients that work, without a warning', { timeout: 900_000 }, async (t) => {
  const home = await pythonGenerator()
  if (home === null) return t.skip(`python3 with venv and pip could not install python-generator.txt`)
  const python = path.join(home, 'bin/python')
  const config = path.join(directory, 'config.yaml')
  // Backups and exports are bytes, whatever the name of their media type.
  const overrides = {
    'application/vnd.sqlite3': 'application/octet-stream',
    'application/jsonl': 'application/octet-stream',
    'application/vnd.apache.parquet': 'application/octet-stream',
  }
  writeFileSync(config, JSON.stringify({ post_hooks: [], content_type_overrides: overrides }))
  for (const [name, content] of Object.entries(DOCUMENTS)) {
    const file = path.join(directory, `${name}.json`)
    writeFileSync(file, JSON.stringify(content))
    const output = path.join(directory, `${name}_client`)
    const args = ['generate', '--path', file, '--output-path', output, '--meta', 'none', '--config', config]
    const told = await run(python, ['-m', 'openapi_python_client', ...args]).catch((error: Error) =>
      assert.fail(error.message),
    )
    assert.doesNotMatch(told.stdout + told.stderr, /warning/i)
  }
  writeFileSync(path.join(directory, 'client.py'), PYTHON)
  const args = [path.join(directory, 'client.py'), service.url, service.operatorToken, service.apiKey]
  assert.equal((await run(python, args)).stdout, 'default\n')
})
