/** The poll of every client: is my configuration still the current one? */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark } from '../benchmark.ts'
import { startChild } from '../child.ts'
import type { HttpLoad } from '../load/http-load.ts'
import type { Paced } from '../load/pace.ts'
import { row } from '../result.ts'
import type { Usage } from '../server-process.ts'
import { startServer, type Server } from '../server.ts'
import { whole } from '../text.ts'
import { POLICIES } from './sample-policies.ts'

const CONNECTIONS = 32
const PROMPTS = 5
const PROMPT_TEXT =
  'You are the support agent of a shop. Answer briefly, in the language of the customer, and never guess. '
const PROMPT_CHARS = 2_000

export const runtimeConfig: Benchmark = {
  name: 'runtime-config',
  title: 'Runtime configuration, not modified and whole',
  part: 'process',
  about: [
    `An environment has ${PROMPTS} prompts of ${PROMPT_CHARS} characters and ${POLICIES.length} policies. ${CONNECTIONS} connections repeat \
\`GET /runtime-config\`: first with the current tag, so that the answer is 304 without a body, then without a tag. The rate limit of the key, by \
default 5,000 requests a second, is raised (\`--rate-limit\`). Each request is logged, as by default.`,
    'The bare limit of the 304 is Fastify with one route that only answers 304, under the same load. The bare limit of the whole \
configuration is Fastify sending the same text. One row compares with `node:http` alone.',
  ],
  run: async ({ plan, place, say }) => {
    await using server = await startServer(path.join(place, 'store'), ['--rate-limit', '1000000'])
    await deploy(server)
    const url = `${server.url}/openapi/v1/runtime-config`
    const headers = { 'x-api-key': server.apiKey }
    const whole200 = await fetch(url, { headers })
    const body = await whole200.text()
    const tag = whole200.headers.get('etag') ?? ''
    const bodyFile = path.join(place, 'body.json')
    writeFileSync(bodyFile, body)
    await using fastify304 = await startBareServer(place, 'not-modified')
    await using plain304 = await startBareServer(place, 'plain-not-modified')
    await using fastify200 = await startBareServer(place, 'body', bodyFile)
    await using load = startChild<HttpLoad, Paced>(new URL('../load/http-load.ts', import.meta.url))

    const unchanged = { status: 304, connections: CONNECTIONS, body: '' }
    const changed = { status: 200, connections: CONNECTIONS, body }
    const ours304 = target(server, { ...unchanged, url, headers: { ...headers, 'if-none-match': tag } })
    const bare304 = target(fastify304, { ...unchanged, url: fastify304.url })
    const node304 = target(plain304, { ...unchanged, url: plain304.url })
    const ours200 = target(server, { ...changed, url, headers })
    const bare200 = target(fastify200, { ...changed, url: fastify200.url })
    for (let round = 0; round <= plan.rounds; round++) {
      for (const { server: asked, request, found } of [ours304, bare304, node304, ours200, bare200]) {
        const before = await asked.usage()
        const { answered, seconds, times } = await load.call({ ...request, seconds: plan.seconds / 2 })
        const cpuUs = (((await asked.usage()).cpuSeconds - before.cpuSeconds) * 1e6) / times.count
        // The first round warms up.
        if (round > 0) found.push({ perSecond: answered / seconds, p99Ms: times.p99, cpuUs })
      }
      const rates = [ours304, bare304].map(({ found }) => whole(found.at(-1)?.perSecond ?? 0))
      if (round > 0) say(`round ${round}: ${rates.join(' 304 a second, bare ')}`)
    }
    const budgets = [{ of: 'ratio', is: 'at least', limit: 0.6 } as const]
    return {
      rows: [
        row({ what: '304', ...rate(ours304, bare304), budgets }),
        row({ what: '304, processor time', ...cpu(ours304, bare304) }),
        row({ what: '304, p99', ...p99(ours304, bare304) }),
        row({ what: '304, beside `node:http` alone', ...rate(ours304, node304) }),
        row({ what: '200', ...rate(ours200, bare200) }),
        row({ what: '200, processor time', ...cpu(ours200, bare200) }),
      ],
      notes: [`The whole configuration has ${whole(Buffer.byteLength(body))} bytes.`],
    }
  },
}

interface Target {
  server: { usage(): Promise<Usage> }
  request: Omit<HttpLoad, 'seconds'>
  found: { perSecond: number; p99Ms: number; cpuUs: number }[]
}

const target = (server: Target['server'], request: Target['request']): Target => ({ server, request, found: [] })

const compare = (name: 'perSecond' | 'p99Ms' | 'cpuUs') => (ours: Target, bare: Target) => ({
  ours: ours.found.map((each) => each[name]),
  bare: bare.found.map((each) => each[name]),
})
const rate = (...sides: [Target, Target]) => ({
  unit: '/s',
  better: 'more' as const,
  ...compare('perSecond')(...sides),
})
const cpu = (...sides: [Target, Target]) => ({ unit: 'µs', better: 'less' as const, ...compare('cpuUs')(...sides) })
const p99 = (...sides: [Target, Target]) => ({ unit: 'ms', better: 'less' as const, ...compare('p99Ms')(...sides) })

interface Named {
  id: string
}

/** Deploys prompts and policies, like an operator. */
async function deploy(server: Server): Promise<void> {
  const { items: workspaces } = await server.operator<{ items: Named[] }>('/workspaces')
  const workspace = `/workspaces/${workspaces[0]?.id}`
  const { items: environments } = await server.operator<{ items: Named[] }>(`${workspace}/environments`)
  const items = []
  for (let number = 1; number <= PROMPTS; number++) {
    const content = `${number}. ${PROMPT_TEXT.repeat(PROMPT_CHARS / PROMPT_TEXT.length + 1)}`.slice(0, PROMPT_CHARS)
    const { promptId } = await server.operator<{ promptId: string }>(`${workspace}/prompts`, {
      name: `prompt-${number}`,
      content,
    })
    items.push({ kind: 'prompt', id: promptId, version: '1' })
  }
  for (const { policyId, condition, severity, action } of POLICIES) {
    await server.operator(`${workspace}/policies`, { policyId, condition, severity, action })
    items.push({ kind: 'policy', id: policyId, version: '1' })
  }
  await server.operator(`/environments/${environments[0]?.id}/deployments`, { items })
}
