// Checks that the server of one release works with the SDKs of another one, and vice versa, from their packed files:
//   node scripts/neighbours.mjs <folder of a release> <folder of another>
// Each folder has what `npm run release` makes. With one folder, the other release is made from this clone.
// A policy blocks one call, and a person approves another. Both SDKs record that, and the server shows it.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort, project, run, serve } from './rehearsal.mjs'
import { makeRelease } from './release.mjs'

const POLICIES = `policies:
  large:
    condition: tool.name == "refund" && tool.input.amount > 100.0
    severity: HIGH
    action: REQUIRE_APPROVAL
  huge:
    condition: tool.name == "refund" && tool.input.amount > 1000.0
    severity: HIGH
    action: BLOCK
environments:
  development:
    policies: [large, huge]
`
const TYPESCRIPT = `import { Tacho } from '@tacho/sdk'
const tacho = new Tacho({ agentName: 'neighbour' })
await tacho.ready()
const refund = tacho.guard(({ amount }) => amount, { name: 'refund' })
const said = []
await tacho.run({ runId: process.argv[2] }, async (run) => {
  run.userInput('Refund')
  for (const amount of [20, 5000, 200]) said.push(await refund({ amount }).catch((error) => error.code))
})
const { dropped, left } = await tacho.shutdown()
console.log(JSON.stringify([...said, dropped + left]))
`
const PYTHON = `import json, sys
try:
    import tacho_sdk as tacho
except ModuleNotFoundError:  # before 0.1.0
    import tacho
tacho.configure(agent_name="neighbour")

@tacho.guard
def refund(amount: int) -> int:
    return amount

said = []
with tacho.run(run_id=sys.argv[1]) as run:
    run.user_input("Refund")
    for amount in (20, 5000, 200):
        try:
            said.append(refund(amount))
        except tacho.ToolBlockedError as error:
            said.append(error.code)
print(json.dumps([*said, tacho.flush(30).left]))
`

const [one, other] = process.argv.slice(2)
if (one === undefined || one.startsWith('-')) {
  console.log(
    readFileSync(import.meta.filename, 'utf8')
      .split('import ', 1)[0]
      .replaceAll(/^\/\/ /gm, '')
      .trim(),
  )
  process.exit(one === undefined ? 2 : 0)
}
const home = mkdtempSync(path.join(tmpdir(), 'tacho-neighbours-'))
process.on('exit', () => rmSync(home, { recursive: true, force: true, maxRetries: 5 }))
const made = path.join(home, 'release')
if (other === undefined) await makeRelease(made)
const releases = [path.resolve(one), other === undefined ? made : path.resolve(other)]
for (const [server, sdk] of [releases, releases.toReversed()]) await check(server, sdk)
process.exit()

function fileOf(release, form) {
  const name = readdirSync(release).find((entry) => form.test(entry))
  if (name === undefined) throw new Error(`${release} has no file ${form}`)
  return path.join(release, name)
}

async function check(serverRelease, sdkRelease) {
  const [server, sdk, wheel] = [
    fileOf(serverRelease, /^tacho-\d.*\.tgz$/),
    fileOf(sdkRelease, /^tacho-sdk-.*\.tgz$/),
    fileOf(sdkRelease, /\.whl$/),
  ]
  const place = mkdtempSync(path.join(home, 'pair-'))
  const files = {
    'package.json': '{"private":true,"type":"module"}',
    'agent.js': TYPESCRIPT,
    'agent.py': PYTHON,
    'tacho.yaml': POLICIES,
  }
  const folder = project(place, 'agent', files)
  run(folder, 'npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', server, sdk])
  run(folder, 'python3', ['-m', 'venv', 'venv'])
  run(folder, 'venv/bin/python', ['-m', 'pip', 'install', '-q', '--no-index', wheel])
  const tacho = path.join(folder, 'node_modules/.bin/tacho')
  const url = `http://127.0.0.1:${await freePort()}`
  const secret = () => `${randomBytes(8).toString('hex')}_${randomBytes(32).toString('hex')}`
  const [key, token] = [`tacho_${secret()}`, `tacho-operator_${secret()}`]
  const first = { TACHO_INIT_API_KEY: key, TACHO_INIT_OPERATOR_TOKEN: token }
  const env = { TACHO_DATA_DIR: path.join(place, 'data'), TACHO_PORT: new URL(url).port, ...first }
  const served = await serve(tacho, ['serve'], `${url}/readyz`, { cwd: folder, env })
  const operator = { TACHO_URL: url, TACHO_OPERATOR_TOKEN: token }
  const agent = { TACHO_URL: url, TACHO_API_KEY: key }
  run(folder, tacho, ['apply', '-f', 'tacho.yaml', '--yes'], operator)
  for (const { runId, command, args } of [
    { runId: 'typescript', command: 'node', args: ['agent.js'] },
    { runId: 'python', command: 'venv/bin/python', args: ['agent.py'] },
  ]) {
    const child = spawn(command, [...args, runId], { cwd: folder, env: { ...process.env, ...agent } })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += chunk))
    child.stderr.on('data', (chunk) => (stderr += chunk))
    while (child.exitCode === null && child.signalCode === null) {
      const { items } = JSON.parse(run(folder, tacho, ['approvals', 'list', '--json'], operator))
      for (const { id } of items) run(folder, tacho, ['approvals', 'approve', id, '--reason', 'known'], operator)
      await sleep(200)
    }
    if (stdout.trim().replaceAll(' ', '') !== '[20,"policy",200,0]') throw new Error(`${runId}: ${stdout}${stderr}`)
    const shown = run(folder, tacho, ['runs', 'show', runId], operator)
    if (!/^COMPLETED/m.test(shown) || !/BLOCK/.test(shown)) throw new Error(`${runId} is stored otherwise:\n${shown}`)
  }
  served.child.kill()
  console.log(`${path.basename(server)} works with ${path.basename(sdk)} and ${path.basename(wheel)}`)
}
