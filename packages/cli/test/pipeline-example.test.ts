/** Runs the steps of the example pipelines against a server, as their runners do. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { ended, startServer, type Ended, type TestServer } from './tacho.ts'

const BIN = fileURLToPath(new URL('../bin', import.meta.url))
const EXAMPLE = fileURLToPath(new URL('../../../examples/pipeline', import.meta.url))
type Job = 'plan' | 'apply' | 'drift'

let server: TestServer
const tokens = { viewer: '', admin: '' }
before(async () => {
  server = await startServer()
  for (const role of ['viewer', 'admin'] as const) {
    tokens[role] = (await server.text('tokens', 'create', '-w', 'default', '--name', role, '--role', role)).trim()
  }
})
after(() => server.stop())

const read = (file: string): unknown => parse(readFileSync(path.join(EXAMPLE, file), 'utf8'))

/** The commands of a job without the installation, and the variable with its token. */
const PIPELINES = {
  'github.yaml'(job: Job) {
    const { jobs } = read('github.yaml') as {
      jobs: Record<Job, { env: Record<string, string>; steps: { run?: string }[] }>
    }
    const commands = jobs[job].steps.flatMap(({ run }) => run ?? []).filter((run) => !run.startsWith('npm '))
    return { commands, token: jobs[job].env['TACHO_OPERATOR_TOKEN'] ?? '' }
  },
  'gitlab.yaml'(job: Job) {
    const jobs = read('gitlab.yaml') as Record<Job, { variables: Record<string, string>; script: string[] }>
    return { commands: jobs[job].script, token: jobs[job].variables['TACHO_OPERATOR_TOKEN'] ?? '' }
  },
}

async function run(file: keyof typeof PIPELINES, job: Job): Promise<Ended> {
  const { commands, token } = PIPELINES[file](job)
  assert.ok(commands.length > 0)
  const env = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('TACHO_'))),
    PATH: `${BIN}${path.delimiter}${process.env['PATH']}`,
    TACHO_URL: server.url,
    TACHO_OPERATOR_TOKEN: token.includes('ADMIN') ? tokens.admin : tokens.viewer,
    GITHUB_SHA: 'abc',
    CI_COMMIT_SHA: 'abc',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  // Start the shell as GitHub's and GitLab's runners do.
  const script = commands.join('\n')
  return ended(
    spawn('bash', ['-eo', 'pipefail', '-c', script], { cwd: EXAMPLE, env, stdio: ['ignore', 'pipe', 'pipe'] }),
  )
}

test('the pipelines plan, apply, find nothing to do, find drift, and mend it', async () => {
  for (const file of ['github.yaml', 'gitlab.yaml'] as const) {
    const codes = async (...jobs: Job[]) => {
      const results: [Job, number | null][] = []
      for (const job of jobs) results.push([job, (await run(file, job)).code])
      return results.map(([job, code]) => `${job} ${code}`)
    }
    const planned = await run(file, 'plan')
    assert.equal(planned.code, 0, planned.stderr)
    assert.match(
      planned.stdout,
      file === 'github.yaml' ? /\+ policy refunds: create version 1/ : /\+ policy refunds: deploy/,
    )
    assert.deepEqual(await codes('drift', 'apply', 'drift', 'plan'), ['drift 3', 'apply 0', 'drift 0', 'plan 0'])
    await server.text('policies', 'undeploy', 'refunds', '-e', 'default/development')
  }
  assert.equal((await run('gitlab.yaml', 'drift')).code, 3)
})
