/** Edge platforms: workerd, which binds timers and requests to the request that began them, and Vercel's edge runtime. */
import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { json, startScriptedService, type ScriptedService } from '@tacho/sdk-conformance/scripted-service.ts'
import { EdgeVM, withoutEdgeRuntime } from './edge/edge-runtime.ts'
import { bundled, startWorkers, withoutWorkerd, written, type Worker } from './edge/workerd.ts'

const CLIENTS = ['module', 'lazy', 'each']
const DELIVERIES = ['await', 'run', 'flush', 'client', 'stream', 'guard']
/** Compatibility dates of workerd. With NEW, a promise that another request resolves resumes in its own request. */
const NEW = { date: '2026-07-01', flags: ['nodejs_compat'] }
const OLD = { date: '2023-05-18', flags: ['nodejs_als'] }
const REQUESTS = 5
/** `flushTimeoutMs` of the workers. The service answers much faster, so no response of a worker may take this long. */
const FLUSH_MS = 10_000

const POLICIES = [
  {
    policyId: 'no-large-refunds',
    name: 'No large refunds',
    description: null,
    version: '1',
    condition: 'tool.name == "refund" && tool.input.amount > 100.0',
    severity: 'HIGH',
    action: 'BLOCK',
  },
]

async function start(t: TestContext): Promise<ScriptedService> {
  const service = await startScriptedService()
  t.after(service.close)
  service.script('runtime-config', json(200, { revision: '1', prompts: [], policies: POLICIES }, { etag: 'W/"1"' }))
  return service
}

const variantOf = (client: string, delivery: string, url: string, isNew: boolean) => `
${delivery === 'client' && client !== 'each' && isNew ? "export { waitUntil } from 'cloudflare:workers'" : 'export const waitUntil = undefined'}
export const [client, delivery, url] = ${JSON.stringify([client, delivery, url])}
`

/** Labels of the events of a run that arrived. */
function labelsOf(service: ScriptedService, runId: string): string[] {
  const events = service.requests('events').flatMap((request) => request.json as { runId: string; label: string }[])
  return [...new Set(events.filter((event) => event.runId === runId).map(({ label }) => label))].sort()
}

async function untilStored(service: ScriptedService, runIds: readonly string[]): Promise<void> {
  const end = performance.now() + 60_000
  while (runIds.some((runId) => !labelsOf(service, runId).includes('completed')) && performance.now() < end)
    await sleep(20)
}

test(
  'workerd: every way to make a client and to deliver stores each run, and no answer waits for another request',
  {
    skip: withoutWorkerd,
  },
  async (t) => {
    const service = await start(t)
    const workers: Worker[] = []
    const code = await bundled('worker.js')
    for (const client of CLIENTS) {
      for (const delivery of DELIVERIES) {
        for (const rules of [NEW, OLD]) {
          // With these rules, workerd has no global `waitUntil`.
          if (rules === OLD && delivery === 'client' && client !== 'each') continue
          const variant = variantOf(client, delivery, service.url, rules === NEW)
          workers.push({ name: `${client}-${delivery}-${rules === NEW ? 'new' : 'old'}`, code, variant, ...rules })
        }
      }
    }
    // Bundle with the files for Node, as adapters of some frameworks do.
    const forNode = await bundled('worker.js', { conditions: ['node'] })
    const variant = variantOf('lazy', 'await', service.url, true)
    workers.push({ name: 'lazy-await-node', code: forNode, variant, ...NEW })
    const addresses = await startWorkers(t, workers)
    for (const [name, url] of addresses) {
      await t.test(name, async () => {
        const ask = async (runId: string) => {
          const begun = performance.now()
          const answer = await (await fetch(`${url}/${runId}`)).text()
          assert.match(answer, name.includes('guard') ? /^paid 1, policy$/ : new RegExp(`^answer ${runId}$`))
          return performance.now() - begun
        }
        const [alone, together] = ['alone', 'together'].map((how) =>
          Array.from({ length: REQUESTS }, (_, at) => `${name}-${how}-${at}`),
        ) as [string[], string[]]
        const waits: number[] = []
        for (const runId of alone) waits.push(await ask(runId))
        waits.push(...(await Promise.all(together.map(ask))))
        await untilStored(service, [...alone, ...together])
        for (const runId of [...alone, ...together])
          assert.deepEqual(
            labelsOf(service, runId),
            name.includes('guard')
              ? ['BLOCK refund', 'completed', 'refund', 'user input']
              : ['completed', 'thought', 'user input'],
            runId,
          )
        assert.ok(Math.max(...waits) < FLUSH_MS, `${Math.max(...waits)} ms`)
        assert.deepEqual(await (await fetch(`${url}/codes`)).json(), [])
      })
    }
  },
)

test('workerd: a caller who leaves takes along no event of another request', { skip: withoutWorkerd }, async (t) => {
  const service = await start(t)
  const variant = variantOf('module', 'await', service.url, true)
  const worker = { name: 'leaving', code: await bundled('worker.js'), variant, ...NEW }
  const [url = ''] = (await startWorkers(t, [worker])).values()
  for (let at = 0; at < REQUESTS; at++) {
    const leaving = new AbortController()
    const left = fetch(`${url}/left-${at}`, { signal: leaving.signal })
    // By then, a first request has sent the first event.
    await sleep(30)
    leaving.abort()
    await assert.rejects(left)
    const begun = performance.now()
    await (await fetch(`${url}/stays-${at}`)).text()
    assert.ok(performance.now() - begun < FLUSH_MS)
    await untilStored(service, [`stays-${at}`])
    assert.deepEqual(labelsOf(service, `stays-${at}`), ['completed', 'thought', 'user input'])
  }
})

test('workerd: the example of docs/sdk/serverless.md', { skip: withoutWorkerd }, async (t) => {
  const service = await start(t)
  const page = readFileSync(new URL('../../../docs/sdk/serverless.md', import.meta.url), 'utf8')
  const [, program = ''] = /^```ts\n(\/\/ Cloudflare Workers.*?)^```$/ms.exec(page) ?? []
  const bindings = { TACHO_URL: service.url, TACHO_API_KEY: 'key' }
  const worker = { name: 'docs', code: await bundled(program), ...NEW, bindings }
  const [url = ''] = (await startWorkers(t, [worker])).values()
  const leaving = new AbortController()
  const left = fetch(`${url}/left`, { signal: leaving.signal }).catch(() => undefined)
  const asked = Array.from({ length: REQUESTS }, () => fetch(url))
  leaving.abort()
  await left
  assert.deepEqual(await Promise.all(asked.map(async (reply) => (await reply).text())), Array(REQUESTS).fill('Hello'))
  const outcomes = () =>
    service
      .requests('events')
      .flatMap((request) => request.json as { eventType: string }[])
      .filter(({ eventType }) => eventType === 'SESSION_OUTCOME').length
  while (outcomes() < REQUESTS) await sleep(20)
})

/** Globals of the platform. Vercel provides AsyncLocalStorage. The timers are Node's, and do not keep this process running. */
const GIVEN = { AsyncLocalStorage, setTimeout, clearTimeout }
const ON_VERCEL = `
import worker from './worker.js'
addEventListener('fetch', (event) => event.respondWith(worker.fetch(event.request, {}, event)))
`

test("Vercel's edge runtime stores each run", { skip: withoutEdgeRuntime }, async (t) => {
  const Vm = EdgeVM
  assert.ok(Vm)
  const service = await start(t)
  for (const client of CLIENTS) {
    for (const delivery of DELIVERIES) {
      const name = `vercel-${client}-${delivery}`
      await t.test(name, async () => {
        const modules = new Map([
          ['node:async_hooks', 'export const { AsyncLocalStorage } = globalThis'],
          ['variant', variantOf(client, delivery, service.url, false)],
        ])
        const code = await bundled(ON_VERCEL, {
          format: 'iife',
          conditions: ['edge-light', 'browser'],
          external: [],
          plugins: [written(modules)],
        })
        const vm = new Vm({ initialCode: code, extend: (context) => Object.assign(context, GIVEN) })
        const ask = async (runId: string) => {
          const reply = await vm.dispatchFetch(`http://edge/${runId}`)
          assert.match(await reply.text(), delivery === 'guard' ? /^paid 1, policy$/ : new RegExp(`^answer ${runId}$`))
          await reply.waitUntil()
        }
        const runIds = Array.from({ length: REQUESTS }, (_, at) => `${name}-${at}`)
        const [first = '', ...others] = runIds
        await ask(first)
        await Promise.all(others.map(ask))
        await untilStored(service, runIds)
        for (const runId of runIds) assert.ok(labelsOf(service, runId).includes('completed'), runId)
      })
    }
  }
})
