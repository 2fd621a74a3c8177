/**
 * A worker that creates its client and delivers events in one of the ways that hosts use. The test writes `variant`:
 * `client` is module, lazy or each; `delivery` is await, run, flush, client, stream or guard.
 */
import { Tacho } from '@tacho/sdk'
import { client, delivery, url, waitUntil } from 'variant'

const codes = []
const make = (more = { waitUntil }) =>
  new Tacho({
    apiKey: 'key',
    baseUrl: url,
    flushTimeoutMs: 10_000,
    onDiagnostic: ({ code }) => codes.push(code),
    ...(delivery === 'client' && more),
  })
const ofModule = client === 'module' ? make() : undefined
let shared

export default {
  async fetch(request, _env, context) {
    const runId = new URL(request.url).pathname.slice(1)
    if (runId === 'codes') return Response.json(codes)
    const handed = { waitUntil: (promise) => context.waitUntil(promise) }
    const tacho = ofModule ?? (client === 'lazy' ? (shared ??= make()) : make(handed))
    const agent = async (run) => {
      run.userInput(runId)
      await new Promise((resolve) => setTimeout(resolve, runId.includes('left') ? 60_000 : 5))
      run.step('thought')
      return `answer ${runId}`
    }
    const refund = async (amount) => {
      const guarded = tacho.guard((input) => `paid ${input.amount}`, { name: 'refund' })
      return guarded({ amount }).catch(({ code }) => code)
    }
    switch (delivery) {
      case 'await':
        return new Response(await tacho.withRun({ runId }, agent))
      case 'run':
        return new Response(await tacho.withRun({ runId, ...handed }, agent))
      case 'client':
        return new Response(await tacho.run({ runId }, agent))
      case 'flush': {
        const answer = await tacho.run({ runId }, agent)
        context.waitUntil(tacho.flush())
        return new Response(answer)
      }
      case 'stream':
        return tacho.withRun({ runId }, async (run) => new Response(new Blob([await agent(run)]).stream()))
      default:
        return new Response(
          await tacho.withRun({ runId }, async (run) => {
            run.userInput(runId)
            return [await refund(1), await refund(500)].join(', ')
          }),
        )
    }
  },
}
