/** The time that the proxy of `tacho record` adds to a model request. */
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Tacho } from '@tacho/sdk'
import { startProxy } from '../../../packages/guards/src/wire/proxy.ts'
import { WireRecorder } from '../../../packages/guards/src/wire/wire-recorder.ts'
import type { Benchmark } from '../benchmark.ts'
import { below, row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { timesOf } from '../stats.ts'

/** About the length of an agent's tenth request. */
const MESSAGES = Array.from({ length: 20 }, (_, at) => ({
  role: at % 2 === 0 ? 'user' : 'assistant',
  content: `${at} `.repeat(500),
}))
const REQUEST = JSON.stringify({ model: 'gpt-5', messages: MESSAGES })
const ANSWER = JSON.stringify({
  model: 'gpt-5',
  choices: [{ index: 0, message: { role: 'assistant', content: 'word '.repeat(400) }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 4_000, completion_tokens: 400, total_tokens: 4_400 },
})
const REQUESTS = 500

export const wire: Benchmark = {
  name: 'wire',
  title: 'A recording proxy before the model',
  part: 'process',
  about: [
    'Requests of 20 kB to chat completions, one after another over one connection, with answers of 2 kB from a server that answers at once. \
Client, proxy and model share one process, so each waits for the work of the others: the figures are an upper bound.',
    'The bare limit is the same client at the same server, without the proxy.',
  ],
  run: async (setting) => {
    const requests = setting.plan.size === 'quick' ? 20 : REQUESTS
    const model = http
      .createServer((request, response) => {
        request.resume().once('end', () => {
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
          response.end(ANSWER)
        })
      })
      .listen(0, '127.0.0.1')
    await once(model, 'listening')
    const bare = `http://127.0.0.1:${(model.address() as AddressInfo).port}`
    // Events are made, masked and queued, but not delivered: the SDK's benchmark measures delivery.
    const tacho = new Tacho({ apiKey: 'bench', fetch: () => new Promise(() => undefined), flushOnSignals: false })
    const recorder = new WireRecorder(tacho, { agentName: 'bench' })
    const routes = new Map([['openai', new URL(bare)]])
    const proxy = await startProxy({ enter: () => ({ routes, observe: (request) => recorder.observe(request) }) })
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const measure = async (base: string) => {
      const times: number[] = []
      for (let each = 0; each < requests; each++) times.push(await ask(agent, `${base}/v1/chat/completions`))
      return { p50: timesOf(times).p50 }
    }
    try {
      const sides = { proxied: () => measure(`${proxy.origin}/s/openai`), bare: () => measure(bare) }
      const found = await inTurn(setting, sides, { warmUp: true, alternating: true })
      const added = found.proxied.p50.map((time, round) => Math.max(0.001, time - (found.bare.p50[round] ?? 0)))
      return {
        rows: [
          row('a request, median', 'ms', found.proxied.p50, found.bare.p50),
          row('added to a request, median', 'ms', added, null, below(2)),
        ],
        notes: [],
      }
    } finally {
      agent.destroy()
      await proxy.close()
      model.closeAllConnections()
      model.close()
      await tacho.shutdown(1)
    }
  },
}

async function ask(agent: http.Agent, url: string): Promise<number> {
  const start = performance.now()
  const request = http.request(url, { method: 'POST', agent, headers: { 'content-length': REQUEST.length } })
  request.end(REQUEST)
  const [answer] = (await once(request, 'response')) as [http.IncomingMessage]
  answer.resume()
  await once(answer, 'end')
  return performance.now() - start
}
