/** Estimated costs: over 150 recorded conversations against plain arithmetic, and after prices change. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { event, startService, type Service } from '../../setup/service.ts'
import { refusalOf, replyOf } from '../web/contract.ts'

const RUNS = path.resolve(import.meta.dirname, '../../../../../../shared/data/tau-airline/runs.jsonl')
const HOUR_MS = 3_600_000
const NOW = Date.now()
const iso = (time: number) => new Date(time).toISOString()
const WINDOW = `from=${iso(NOW - HOUR_MS)}&to=${iso(NOW + HOUR_MS)}`

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

const environment = async (tenant = '') => {
  const { workspaceId, environmentId } = await service.newTenant(`prices ${tenant}`)
  const key = await service.newKey({ scopes: ['events:write'], environmentId })
  const read = (place: string) => service.operator(`/environments/${environmentId}/${place}`)
  const change = (verb: string, body: object) =>
    service.operator(`/workspaces/${workspaceId}/prices/${verb}`, { method: 'POST', body })
  return { key, workspaceId, environmentId, read, change }
}

const llmCall = (runId: string, usage: object, rest: object = {}, given: object = {}) =>
  event({ runId, timestamp: NOW, eventType: 'LLM_CALL', payload: { model: 'gpt-4o', usage, ...rest }, ...given })

interface Conversation {
  messages: { role: string }[]
}

test(
  'the estimate for 150 real conversations is the one of plain arithmetic',
  { skip: !existsSync(RUNS) },
  async () => {
    const { key, read } = await environment('real')
    const conversations = readFileSync(RUNS, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Conversation)
    assert.equal(conversations.length, 150)
    // The file has texts and its model (gpt-4o) but no usage: four characters count as a token, and what the call before
    // sent is cached, as with the provider, in blocks of 128 from 1,024 tokens on.
    let [expectedNanos, allCached] = [0, 0]
    const ofRun = new Map<string, number>()
    const events: object[] = []
    for (const [index, { messages }] of conversations.entries()) {
      const runId = `conversation-${index}`
      let [sent, before, nanos] = [0, 0, 0]
      for (const message of messages) {
        const tokens = Math.ceil(JSON.stringify(message).length / 4)
        if (message.role === 'assistant') {
          const cached = before < 1_024 ? 0 : before - (before % 128)
          const usage = {
            prompt_tokens: sent,
            completion_tokens: tokens,
            prompt_tokens_details: { cached_tokens: cached },
          }
          events.push(llmCall(runId, usage))
          // In dollars for a million: 2.50 for input, 1.25 from the cache, 10 for output.
          nanos += (sent - cached) * 2_500 + cached * 1_250 + tokens * 10_000
          before = sent
          allCached += cached
        }
        sent += tokens
      }
      ofRun.set(runId, nanos)
      expectedNanos += nanos
    }
    // Each conversation has a cost, and the cache saves a large part of the sum.
    assert.ok([...ofRun.values()].every((nanos) => nanos > 0))
    assert.ok(allCached * 1_250 > expectedNanos / 4)
    for (let at = 0; at < events.length; at += 100) {
      assert.equal((await service.record(events.slice(at, at + 100), key)).body.success, true)
    }
    let cursor = ''
    let runs = 0
    do {
      const page = replyOf('listOperatorRuns', await read(`runs?limit=200${cursor}`))
      for (const run of page.items) {
        assert.equal(run.estimatedCost, (ofRun.get(run.runId) ?? 0) / 1e9, run.runId)
        assert.deepEqual([run.usage.cost, run.unpricedCalls], [0, 0])
        assert.match(run.priceTable ?? '', /^genai-prices \d+\.\d+\.\d+$/)
        runs++
      }
      cursor = page.nextCursor === null ? '' : `&cursor=${page.nextCursor}`
    } while (cursor !== '')
    assert.equal(runs, 150)
    const [hour] = replyOf('readUsage', await read(`usage?${WINDOW}`)).items
    assert.equal(hour?.estimatedCost, expectedNanos / 1e9)
    for (const by of ['agent', 'model']) {
      const { items } = replyOf('readUsagePoints', await read(`usage/points?${WINDOW}&by=${by}&step=window`))
      assert.deepEqual(
        items.flatMap(({ estimatedCost }) => estimatedCost ?? []),
        [expectedNanos / 1e9],
        by,
      )
    }
  },
)

test('what the client sent stays the cost; only calls without one are estimated', async () => {
  const { key, read, environmentId } = await environment('sent')
  const usage = { promptTokens: 1_000, completionTokens: 100 }
  const sent = llmCall('r', usage, { cost: 7 }, { eventId: 'sent' })
  const unsent = llmCall('r', usage, {}, { eventId: 'unsent' })
  const other = llmCall('r', usage, { model: 'our-llama' }, { eventId: 'other' })
  await service.record([sent, unsent, other, event({ runId: 'r', eventId: 'step', timestamp: NOW })], key)
  const run = replyOf('readOperatorRun', await read('runs/r'))
  assert.deepEqual([run.usage.cost, run.estimatedCost, run.unpricedCalls], [7, 0.0035, 1])
  const reader = await service.newKey({ scopes: ['usage:read'], environmentId })
  const shown = await service.api<{ usage: object }>('/runs/r', { headers: { 'x-api-key': reader } })
  const sums = { promptTokens: 3_000, completionTokens: 300, totalTokens: 3_300, cost: 7 }
  assert.deepEqual(shown.body.usage, sums, 'the public interface has no estimate')
  const ofEvent = async (id: string) => {
    const { estimatedCost, unpricedCalls, priceTable } = replyOf('readEvent', await read(`runs/r/events/${id}`))
    return [estimatedCost, unpricedCalls, priceTable !== null]
  }
  assert.deepEqual(await ofEvent('sent'), [null, 0, false])
  assert.deepEqual(await ofEvent('unsent'), [0.0035, 0, true])
  assert.deepEqual(await ofEvent('other'), [null, 1, true])
  assert.deepEqual(await ofEvent('step'), [null, 0, false])
  const { items } = replyOf('listUnpricedModels', await read(`unpriced-models?${WINDOW}`))
  assert.deepEqual(
    items.map(({ model, calls, tokens }) => [model, calls, tokens]),
    [['our-llama', 1, 1_100]],
  )
})

test('a price of the workspace counts at once, also for earlier calls, and changes the name of the table', async () => {
  const { key, read, change, workspaceId } = await environment('own')
  const cached = { promptTokens: 1_000_000, cachedTokens: 400_000, completionTokens: 100_000 }
  await service.record(
    [
      llmCall('long', cached, { model: 'our-llama' }),
      llmCall('short', { promptTokens: 1_000 }, { model: 'our-llama' }),
    ],
    key,
  )
  const estimates = async () => {
    const { items } = replyOf('listOperatorRuns', await read('runs'))
    const byRun = new Map(items.map((run) => [run.runId, run]))
    return ['long', 'short'].map((runId) => byRun.get(runId)?.estimatedCost)
  }
  assert.deepEqual(await estimates(), [null, null])
  const model = 'our-llama'
  const set = replyOf('setPrice', await change('set', { model, input: 1, output: 3, cacheRead: 0.1 }))
  assert.equal(set.model, model)
  assert.deepEqual(await estimates(), [0.94, 0.001])
  const name = replyOf('readOperatorRun', await read('runs/short')).priceTable
  assert.match(name ?? '', /^genai-prices [\d.]+\+[0-9a-f]{8}$/)
  const listed = replyOf('listPrices', await service.operator(`/workspaces/${workspaceId}/prices`))
  assert.deepEqual([listed.priceTable, listed.items.length], [name, 1])
  await change('set', { model, input: 1, output: 3, call: 0.5, longContext: { above: 200_000, input: 2, output: 6 } })
  assert.deepEqual(await estimates(), [3.1, 0.501])
  assert.notEqual(replyOf('readOperatorRun', await read('runs/short')).priceTable, name)
  // Another workspace does not see it.
  const other = await environment('other')
  await service.record([llmCall('short', { promptTokens: 1_000 }, { model })], other.key)
  assert.equal(replyOf('readOperatorRun', await other.read('runs/short')).estimatedCost, null)
  replyOf('removePrice', await change('remove', { model }))
  assert.deepEqual(await estimates(), [null, null])
  assert.deepEqual(refusalOf(await change('remove', { model })), [404, 'not_found'])
  for (const wrong of [
    { model, input: -1, output: 1 },
    { model, input: 1 },
    { model: '', input: 1, output: 1 },
  ]) {
    assert.deepEqual(refusalOf(await change('set', wrong)), [400, 'invalid_request'])
  }
  const audit = replyOf('listAudit', await service.operator('/audit'))
  const actions = audit.items.map(({ action }) => action).filter((action) => action.startsWith('price.'))
  assert.deepEqual(actions.toSorted(), ['price.remove', 'price.set', 'price.set'])
})

test('audio without a price is at least what text costs, in runs, sums and lists, until a price is set', async () => {
  const { key, read, change } = await environment('audio')
  const usage = { prompt_tokens: 1_000, completion_tokens: 0, prompt_tokens_details: { audio_tokens: 900 } }
  const model = 'gpt-4o-audio-preview'
  await service.record(
    [llmCall('spoken', usage, { model }), llmCall('spoken', { prompt_tokens: 1_000 }, { model })],
    key,
  )
  const seen = async () => {
    const run = replyOf('readOperatorRun', await read('runs/spoken'))
    const [hour] = replyOf('readUsage', await read(`usage?${WINDOW}`)).items
    const { items } = replyOf('listUnpricedModels', await read(`unpriced-models?${WINDOW}`))
    const figures = [run, hour].map((one) => [one?.estimatedCost, one?.unpricedCalls])
    return [...figures, items.map(({ calls, tokens }) => [calls, tokens])]
  }
  assert.deepEqual(await seen(), [[0.005, 1], [0.005, 1], [[1, 1_000]]])
  replyOf('setPrice', await change('set', { model, input: 2.5, output: 10, audioInput: 40 }))
  assert.deepEqual(await seen(), [[0.03875, 0], [0.03875, 0], []])
})
