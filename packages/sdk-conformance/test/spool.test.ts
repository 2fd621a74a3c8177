/** A process of one SDK is killed; the other SDK delivers what it left in the spool. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { json, refuse, startScriptedService, type SentEvent } from '../src/scripted-service.ts'
import { interpreter, PYTHON_SDK, withoutPython } from './python.ts'

const TACHO = fileURLToPath(new URL('../../sdk/src/index.ts', import.meta.url))
const RECEIVED = json(202, { recordId: '01900000-0000-7000-8000-0000000000dd', status: 'RECEIVED', isNew: true })

interface Sdk {
  readonly command: readonly string[]
  /** Program that records a text that JSON must escape, and then waits. */
  readonly record: string
  readonly recover: string
}

const TYPESCRIPT: Sdk = {
  command: [process.execPath, '--input-type=module-typescript', '--eval'],
  record: `
    import { Tacho } from ${JSON.stringify(TACHO)}
    const tacho = new Tacho({ spool: process.env.SPOOL, onDiagnostic: () => undefined })
    const run = tacho.startRun({ runId: 'spooled' })
    run.userInput('ä\\n"😀"')
    run.end()
    tacho.reportIssue({ detectionType: 'CUSTOM' })
    setInterval(() => undefined, 1_000)
    console.log('ready')`,
  recover: `
    import { Tacho } from ${JSON.stringify(TACHO)}
    const tacho = new Tacho({ spool: process.env.SPOOL })
    await tacho.ready()
    const { left } = await tacho.shutdown(60_000)
    console.log(left, tacho.counters().recovered, tacho.issueRecordCounters().accepted)`,
}
const PYTHON: Sdk = {
  command: [interpreter, '-c'],
  record: `
import os, time, tacho_sdk as tacho
client = tacho.configure(spool=os.environ["SPOOL"], on_diagnostic=lambda _: None)
run = tacho.start_run(run_id="spooled")
run.user_input('ä\\n"😀"')
run.end()
tacho.report_issue(tacho.IssueReport("CUSTOM"))
print("ready", flush=True)
time.sleep(3600)`,
  recover: `
import os, tacho_sdk as tacho
client = tacho.configure(spool=os.environ["SPOOL"])
assert client.ready(60)
left = client.shutdown(60).left
print(left, client.counters().recovered, client.issue_record_counters().accepted)`,
}

for (const [name, killed, next] of [
  ['TypeScript delivers what Python left', PYTHON, TYPESCRIPT],
  ['Python delivers what TypeScript left', TYPESCRIPT, PYTHON],
] as const) {
  test(name, { skip: withoutPython }, async (t) => {
    const service = await startScriptedService()
    t.after(service.close)
    const spool = mkdtempSync(path.join(tmpdir(), 'tacho-both-'))
    t.after(() => rmSync(spool, { recursive: true, force: true }))
    const start = starter(t, service.url, spool)
    service.script('events', refuse(503))
    service.script('issue-records', refuse(503))
    const child = start(killed, killed.record)
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'close')
    service.script('events', json(200, { success: true, accepted: 2, retryableEventIds: [], rejectedEventIds: [] }))
    service.script('issue-records', RECEIVED)

    const other = start(next, next.recover)
    let [output, errors] = ['', '']
    other.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    other.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    await once(other, 'close')
    assert.deepEqual([output, errors], ['0 2 1\n', ''])
    // The killed process may have sent some events too. They have the same ids, so count each id once.
    const sent = service.requests('events').flatMap((request) => request.json as SentEvent[])
    const events = new Map(sent.map((event) => [event.eventId, event])).values()
    assert.deepEqual(
      [...events].map(({ eventType, payload }) => [eventType, (payload as { text?: string }).text]),
      [
        ['USER_INPUT', 'ä\n"😀"'],
        ['SESSION_OUTCOME', undefined],
      ],
    )
    assert.equal(readdirSync(spool).length, 0)
  })
}

function starter(t: TestContext, url: string, spool: string) {
  return ({ command: [program = '', ...args] }: Sdk, code: string) => {
    const given = { TACHO_URL: url, TACHO_API_KEY: 'key', SPOOL: spool, PYTHONPATH: path.join(PYTHON_SDK, 'src') }
    const child = spawn(program, [...args, code], { env: { ...process.env, ...given, NODE_TEST_CONTEXT: '' } })
    t.after(() => child.kill('SIGKILL'))
    return child
  }
}
