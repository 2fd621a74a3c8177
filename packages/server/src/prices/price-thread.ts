/** The prices of the package. Import this only in a thread or a test. */
import { answerCalls } from '../threads/threads.ts'
import { calcPrice, findProvider, type ConditionalPrice, type ModelPrice } from '@pydantic/genai-prices'
import type { DatedRates, ModelRates, Rate, Rates } from '../domain/runs/estimate.ts'

answerCalls((models: string[]) => models.map(packageRates))

/** Null: the package lacks the model, or the prices of its tokens. */
export function packageRates(name: string): ModelRates | null {
  if (name.endsWith(':free')) return [{ rates: { input: 0, output: 0 } }]
  const prices = find(name) ?? find(plainName(name))
  if (prices === null) return null
  const dated = Array.isArray(prices) ? prices : [{ prices }]
  const rates = dated.map((each) => toDated(each, /(?:^|[/:])gemini/i.test(name)))
  return rates.every((each) => each !== null) ? rates : null
}

function find(name: string): ModelPrice | ConditionalPrice[] | null {
  const [, provider = '', rest = ''] = /^([^/:]+)[/:](.+)$/.exec(name) ?? []
  const isProvider = provider !== '' && findProvider({ providerId: provider }) !== undefined
  return (
    pricesOf(name) ??
    (isProvider ? pricesOf(rest, provider) : null) ??
    (provider === '' ? null : pricesOf(rest)) ??
    // Names that Amazon Bedrock uses.
    pricesOf(name, 'aws')
  )
}

/**
 * Suffixes of OpenRouter choose a provider or a tool, not a model. Some gateways put the version of Claude before its
 * family.
 */
function plainName(name: string): string {
  return name
    .replace(/:(?:nitro|floor|online|exacto|beta|extended|thinking)$/, '')
    .replace(
      /\bclaude-(\d)(?:[.-](\d))?-(opus|sonnet|haiku)\b/,
      (whole, major: string, minor: string | undefined, family: string) =>
        Number(major) < 4 ? whole : `claude-${family}-${[major, minor].filter(Boolean).join('-')}`,
    )
}

function pricesOf(model: string, providerId?: string): ModelPrice | ConditionalPrice[] | null {
  return calcPrice({}, model, providerId === undefined ? {} : { providerId })?.model.prices ?? null
}

function toDated({ prices, constraint }: ConditionalPrice, isGemini: boolean): DatedRates | null {
  const rates = toRates(prices, isGemini)
  if (rates === null) return null
  if (constraint?.type === 'start_date') return { from: Date.parse(constraint.start_date), rates }
  if (constraint?.type === 'time_of_date') {
    return { daily: { from: secondOf(constraint.start_time), to: secondOf(constraint.end_time) }, rates }
  }
  return { rates }
}

/** Google's input price is that of text, images and video: ai.google.dev/gemini-api/docs/pricing. */
function toRates(prices: ModelPrice, isGemini: boolean): Rates | null {
  const input = toRate(prices['input_mtok'])
  const output = toRate(prices['output_mtok'])
  const call = prices['requests_kcount']
  // Embedding models have no output, and image models have no price for tokens.
  if (input === undefined) return null
  return {
    input,
    output: output ?? 0,
    cacheRead: toRate(prices['cache_read_mtok']),
    cacheWrite: toRate(prices['cache_write_mtok']),
    cacheWrite1h: toRate(prices['cache_write_1h_mtok']),
    reasoning: toRate(prices['output_reasoning_mtok']),
    audioInput: toRate(prices['input_audio_mtok']),
    cachedAudio: toRate(prices['cache_audio_read_mtok']),
    imageInput: toRate(prices['input_image_mtok'] ?? (isGemini ? prices['input_mtok'] : undefined)),
    cachedImage: toRate(prices['cache_image_read_mtok'] ?? (isGemini ? prices['cache_read_mtok'] : undefined)),
    audioOutput: toRate(prices['output_audio_mtok']),
    imageOutput: toRate(prices['output_image_mtok']),
    ...(typeof call === 'number' && { call: call / 1_000 }),
  }
}

function toRate(price: ModelPrice[string]): Rate | undefined {
  if (typeof price !== 'object') return price
  const above = price.tiers.map(({ start, price: higher }) => ({ context: start, price: higher }))
  return { base: price.base, above: above.toSorted((a, b) => a.context - b.context) }
}

/** Second of the day in UTC. `time`: for example 16:30:00Z or 00:30:00+08:00. */
function secondOf(time: string): number {
  return (((Date.parse(`1970-01-01T${time}`) / 1_000) % 86_400) + 86_400) % 86_400
}
