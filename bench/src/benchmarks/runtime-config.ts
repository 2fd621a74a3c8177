/** The poll of every client: is my configuration still the current one? */
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { startBareServer } from '../bare/http-server.ts'
import type { Benchmark } from '../benchmark.ts'
import type { Sent } from '../load/load.ts'
import { startLoad } from '../load/start.ts'
import { ratioAtLeast, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { ServerProcess, Usage } from '../server-process.ts'
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
  run: async (setting) => {
    const { plan, place } = setting
    await using server = await startServer(path.join(place, 'store'), ['--rate-limit', '1000000'])
    await deploy(server)
    const config = '/openapi/v1/runtime-config'
    const reply = await fetch(`${server.url}${config}`, { headers: server.headers })
    const body = await reply.text()
    const bodyFile = path.join(place, 'body.json')
    writeFileSync(bodyFile, body)
    await using fastify304 = await startBareServer(place, 'not-modified')
    await using plain304 = await startBareServer(place, 'plain-not-modified')
    await using fastify200 = await startBareServer(place, 'body', bodyFile)
    await using load = startLoad()

    const repeat =
      (asked: Asked, send: Sent, headers = asked.headers) =>
      async () => {
        const before = await asked.usage()
        const request = { connections: CONNECTIONS, seconds: plan.seconds / 2, send }
        const { answered, seconds, times } = await load.send({ url: asked.url, headers }, request)
        const cpuUs = (((await asked.usage()).cpuSeconds - before.cpuSeconds) * 1e6) / times.count
        return { rate: answered / seconds, p99: times.p99, cpuUs }
      }
    const unchanged = (path: string) => ({ paths: [path], status: 304, expected: '' })
    const changed = (path: string) => ({ paths: [path], status: 200, expected: body })
    const tagged = { ...server.headers, 'if-none-match': reply.headers.get('etag') ?? '' }
    const sides = {
      ours304: repeat(server, unchanged(config), tagged),
      bare304: repeat(fastify304, unchanged('/')),
      node304: repeat(plain304, unchanged('/')),
      ours200: repeat(server, changed(config)),
      bare200: repeat(fastify200, changed('/')),
    }
    const { ours304, bare304, node304, ours200, bare200 } = await inTurn(setting, sides, { warmUp: true })
    return {
      rows: [
        row('304', '/s', ours304.rate, bare304.rate, ratioAtLeast(0.6)),
        row('304, processor time', 'µs', ours304.cpuUs, bare304.cpuUs),
        row('304, p99', 'ms', ours304.p99, bare304.p99),
        row('304, beside `node:http` alone', '/s', ours304.rate, node304.rate),
        row('200', '/s', ours200.rate, bare200.rate),
        row('200, processor time', 'µs', ours200.cpuUs, bare200.cpuUs),
      ],
      notes: [`The whole configuration has ${whole(Buffer.byteLength(body))} bytes.`],
    }
  },
}

type Asked = ServerProcess & { usage(): Promise<Usage> }

/** Deploys prompts and policies, like an operator. */
async function deploy(server: Server): Promise<void> {
  const { workspaceId, environmentId } = await server.home()
  const workspace = `/workspaces/${workspaceId}`
  const items = []
  for (let number = 1; number <= PROMPTS; number++) {
    const content = `${number}. ${PROMPT_TEXT.repeat(PROMPT_CHARS / PROMPT_TEXT.length + 1)}`.slice(0, PROMPT_CHARS)
    const prompt = { name: `prompt-${number}`, content }
    const { promptId } = await server.operator<{ promptId: string }>(`${workspace}/prompts`, prompt)
    items.push({ kind: 'prompt', id: promptId, version: '1' })
  }
  for (const { policyId, condition, severity, action } of POLICIES) {
    await server.operator(`${workspace}/policies`, { policyId, condition, severity, action })
    items.push({ kind: 'policy', id: policyId, version: '1' })
  }
  await server.operator(`/environments/${environmentId}/deployments`, { items })
}
