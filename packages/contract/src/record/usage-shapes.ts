/**
 * Token counts of a model call, by the names that providers and frameworks give them. Pure and without imports: the
 * server and the CLI read usage with it. `packages/sdk/src/recording/usage-shapes.ts` is the same file, and
 * `sdks/python/src/tacho_sdk/recording/usage_shapes.py` the same table: `packages/contract/vectors/usage-shapes.json`, a whole
 * answer of each provider, tests all three. docs/cost.md
 */

export interface CallCounts {
  /** Includes the cached tokens. Null: not reported. */
  promptTokens: number | null
  /** Includes the reasoning tokens. Null: not reported. */
  completionTokens: number | null
  totalTokens: number | null
  /** Parts of the prompt. `cacheWrite1hTokens` are those of the written tokens that are cached for an hour. */
  cachedTokens: number
  cacheWriteTokens: number
  cacheWrite1hTokens: number
  audioInputTokens: number
  cachedAudioTokens: number
  imageInputTokens: number
  cachedImageTokens: number
  /** Parts of the completion. */
  reasoningTokens: number
  audioOutputTokens: number
  imageOutputTokens: number
  /** Paths of members, as sent, whose value is not a token count. */
  invalid: readonly string[]
  /** The counts above are only lower bounds for these. */
  unknown: readonly ('promptTokens' | 'completionTokens')[]
}

type Counted = Exclude<keyof CallCounts, 'invalid' | 'unknown'>

/**
 * Of several names with a value, the first counts. Each name also stands for its snake case. A dot leads into an
 * object, or into each object of a list; `[AUDIO]` is the `tokenCount` of a list's item with that `modality`, `[1h]`
 * the `inputTokens` with that `ttl`.
 */
export const USAGE_NAMES = {
  promptTokens: [
    'promptTokens',
    'inputTokens',
    'inputTokens.total',
    'promptTokenCount',
    'inputTokenCount',
    'inputTextTokenCount',
    'promptEvalCount',
    // Tokens that Cohere bills, without those that it adds itself.
    'billedUnits.inputTokens',
    'tokens.inputTokens',
    'tokens',
    'input',
    'prompt',
  ],
  completionTokens: [
    'completionTokens',
    'outputTokens',
    'outputTokens.total',
    'generationTokens',
    'candidatesTokenCount',
    'responseTokenCount',
    'outputTokenCount',
    'generatedTokenCount',
    'evalCount',
    'billedUnits.outputTokens',
    'tokens.outputTokens',
    'output',
    'completion',
  ],
  totalTokens: ['totalTokens', 'totalTokenCount', 'total'],
  cachedTokens: [
    'cachedTokens',
    'cacheReadTokens',
    'cacheReadInputTokens',
    'cachedInputTokens',
    'cachedPromptTokens',
    'numCachedTokens',
    'promptTokensDetails.cachedTokens',
    'promptTokensDetails.cacheRead',
    'promptDetails.cacheRead',
    'promptDetails.cacheInput',
    'cacheRead.inputTokens',
    'details.cacheReadTokens',
    'details.cacheReadInputTokens',
    'details.cachedTokens',
    'details.cachedContentTokens',
    'promptTokenDetails.cachedTokens',
    'inputTokensDetails.cachedTokens',
    'inputTokenDetails.cachedTokens',
    'inputTokenDetails.cacheReadTokens',
    'inputTokenDetails.cacheRead',
    'inputDetails.cacheRead',
    'inputTokens.cacheRead',
    'cachedContentTokenCount',
    'cacheReadInputTokenCount',
    'promptCacheHitTokens',
    'inputCachedTokens',
    'inputCacheRead',
  ],
  cacheWriteTokens: [
    'cacheWriteTokens',
    'cacheCreationInputTokens',
    'cacheWriteInputTokens',
    'cacheCreationTokens',
    'promptTokensDetails.cacheWriteTokens',
    'promptTokensDetails.cacheCreationTokens',
    'promptDetails.cacheWrite',
    'cacheCreation.inputTokens',
    'cacheWrite.inputTokens',
    'details.cacheWriteTokens',
    'details.cacheCreationInputTokens',
    'inputTokensDetails.cacheWriteTokens',
    'inputTokenDetails.cacheWriteTokens',
    'inputTokenDetails.cacheCreation',
    'inputDetails.cacheWrite',
    'inputTokens.cacheWrite',
    'cacheWriteInputTokenCount',
    'inputCacheCreation',
  ],
  cacheWrite1hTokens: [
    'cacheWrite1hTokens',
    'cacheCreation.ephemeral1hInputTokens',
    'inputTokenDetails.ephemeral1hInputTokens',
    'cacheDetails[1h]',
    'promptTokensDetails.cacheCreationTokenDetails.ephemeral1hInputTokens',
  ],
  reasoningTokens: [
    'reasoningTokens',
    'completionTokensDetails.reasoningTokens',
    'completionTokensDetails.reasoning',
    'completionDetails.reasoning',
    'reasoning.outputTokens',
    'outputTokensDetails.reasoningTokens',
    'outputTokensDetails.thinkingTokens',
    'outputTokenDetails.reasoningTokens',
    'outputTokenDetails.reasoning',
    'outputDetails.reasoning',
    'outputTokens.reasoning',
    'details.reasoningTokens',
    'details.thinkingTokens',
    'details.thoughtsTokens',
    'thoughtsTokenCount',
    'outputReasoningTokens',
    'outputReasoning',
  ],
  audioInputTokens: [
    'audioInputTokens',
    'inputAudioTokens',
    'promptTokensDetails.audioTokens',
    'promptTokensDetails.audio',
    'promptDetails.audio',
    'details.inputAudioTokens',
    'inputTokensDetails.audioTokens',
    'inputTokenDetails.audioTokens',
    'inputTokenDetails.audio',
    'inputDetails.audio',
    'promptTokensDetails[AUDIO]',
  ],
  cachedAudioTokens: [
    'cachedAudioTokens',
    'cacheAudioReadTokens',
    'details.cacheAudioReadTokens',
    'promptTokensDetails.cachedTokensDetails.audioTokens',
    'inputTokenDetails.cachedTokensDetails.audioTokens',
    'cacheTokensDetails[AUDIO]',
  ],
  imageInputTokens: [
    'imageInputTokens',
    'inputImageTokens',
    'promptTokensDetails.imageTokens',
    'inputTokensDetails.imageTokens',
    'inputTokenDetails.imageTokens',
    'inputDetails.image',
    'promptDetails.image',
    'promptTokensDetails[IMAGE]',
  ],
  cachedImageTokens: [
    'cachedImageTokens',
    'inputTokenDetails.cachedTokensDetails.imageTokens',
    'cacheTokensDetails[IMAGE]',
  ],
  audioOutputTokens: [
    'audioOutputTokens',
    'outputAudioTokens',
    'completionTokensDetails.audioTokens',
    'completionTokensDetails.audio',
    'completionDetails.audio',
    'details.outputAudioTokens',
    'outputTokensDetails.audioTokens',
    'outputTokenDetails.audioTokens',
    'outputTokenDetails.audio',
    'outputDetails.audio',
    'candidatesTokensDetails[AUDIO]',
    'responseTokensDetails[AUDIO]',
  ],
  imageOutputTokens: [
    'imageOutputTokens',
    'outputImageTokens',
    'completionTokensDetails.imageTokens',
    'outputTokensDetails.imageTokens',
    'outputTokenDetails.imageTokens',
    'outputDetails.image',
    'candidatesTokensDetails[IMAGE]',
  ],
} as const satisfies Record<Counted, readonly string[]>

/** Names of prompts that leave out cached tokens, with the names of these. */
const CACHE_APART: ReadonlyMap<string, RegExp> = new Map([
  // Anthropic, Amazon Bedrock, the Claude Agent SDK.
  ['inputTokens', /^cache(?:Read|Write|Creation)InputTokens$/],
  ['inputTokenCount', /^cache(?:Read|Write)InputTokenCount$/],
])
const REASONING_APART_GEMINI: ReadonlySet<string> = new Set(['candidatesTokenCount', 'responseTokenCount'])

type Fields = Readonly<Record<string, unknown>>
type Found = Pick<Path, 'name' | 'steps'> & { value: unknown }

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
export const snake = (name: string) => name.replaceAll(/[A-Z]|\d\w/g, (letter) => `_${letter.toLowerCase()}`)
/** Bridges send numbers as texts. */
function countIn(sent: unknown): number | null {
  const value = typeof sent === 'string' && /^\d{1,10}$/.test(sent) ? Number(sent) : sent
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 1e9 ? value + 0 : null
}

interface Path {
  name: string
  steps: readonly (readonly string[])[]
  modality: string | null
}

const PATHS = Object.fromEntries(
  Object.entries(USAGE_NAMES).map(([count, names]) => [count, names.map(pathOf)]),
) as unknown as Record<Counted, readonly Path[]>

/** A usage has few members, and there are hundreds of names. So search only for counts that its members can mean. */
const COUNTS_OF = new Map<string, string[]>()
for (const [count, paths] of Object.entries(PATHS))
  for (const name of paths.flatMap(({ steps }) => steps[0] ?? []))
    COUNTS_OF.set(name, [...(COUNTS_OF.get(name) ?? []), count])

/** Gemini counts separately what its own tools add to the prompt. */
const MORE_PROMPT = [pathOf('toolUsePromptTokenCount')]

function pathOf(name: string): Path {
  const [path = '', modality = null] = name.split(/[[\]]/)
  return { name, steps: path.split('.').map((step) => [step, snake(step)]), modality }
}

/** Null: `usage` has no token counts. */
export function callCounts(usage: unknown): CallCounts | null {
  if (!isFields(usage) || Array.isArray(usage)) return null
  const invalid: string[] = []
  const sent = Object.keys(usage).flatMap((name) => COUNTS_OF.get(name) ?? [])
  const seek = (count: Counted): Found | undefined => (sent.includes(count) ? firstOf(usage, PATHS[count]) : undefined)
  const countOf = (one: Found | undefined): number | null => {
    const count = one ? countIn(one.value) : null
    if (one && count === null) invalid.push(sentPath(usage, one.steps))
    return count
  }
  const tokensIn = (count: Counted): number => countOf(seek(count)) ?? 0
  const [prompt, completion] = [seek('promptTokens'), seek('completionTokens')]
  // Cohere bills only a part of its prompt, but its cached tokens belong to the whole prompt.
  const [read, written] = prompt?.name.startsWith('billed') ? [] : [seek('cachedTokens'), seek('cacheWriteTokens')]
  const reasoning = seek('reasoningTokens')
  const [sentPrompt, sentCompletion] = [countOf(prompt), countOf(completion)]
  const totalTokens = countOf(seek('totalTokens'))
  const [cachedTokens, cacheWriteTokens] = [countOf(read) ?? 0, countOf(written) ?? 0]
  const reasoningTokens = countOf(reasoning) ?? 0
  const media = {
    audioInputTokens: tokensIn('audioInputTokens'),
    imageInputTokens: tokensIn('imageInputTokens'),
    audioOutputTokens: tokensIn('audioOutputTokens'),
    imageOutputTokens: tokensIn('imageOutputTokens'),
  }
  const more = countOf(firstOf(usage, MORE_PROMPT)) ?? 0
  const ofLangfuse = (whole: Found | undefined, parts: (Found | undefined)[]): number | null =>
    whole?.name === 'input' || whole?.name === 'output' ? besides(usage, whole.name, parts, invalid) : null
  const besidesInput = ofLangfuse(prompt, [read, written])
  const apart = CACHE_APART.get(prompt?.name ?? '')
  const isNamedApart = besidesInput !== null || [read, written].some((one) => one && apart?.test(one.name))
  const promptTokens = atLeast(sentPrompt, totalTokens, (known) => {
    const parts = besidesInput ?? cachedTokens + cacheWriteTokens
    // OpenLLMetry sends Anthropic's names, but with the cached tokens in the input. Only its total shows this.
    const whole = known + (sentCompletion ?? 0)
    const isWithin = parts <= known && totalTokens === whole
    const isApart = parts > known || (!isWithin && isNamedApart) || totalTokens === whole + parts
    return Math.max(known + more + (isApart ? parts : 0), media.audioInputTokens + media.imageInputTokens)
  })
  const besidesOutput = ofLangfuse(completion, [reasoning])
  const isReasoningApart = besidesOutput !== null || REASONING_APART_GEMINI.has(completion?.name ?? '')
  const completionTokens = atLeast(sentCompletion, totalTokens, (known) => {
    const parts = besidesOutput ?? reasoningTokens
    // For xAI, only the total shows that reasoning tokens are not in the completion.
    const whole = known + (promptTokens ?? 0)
    const isWithin = besidesOutput !== null && parts <= known && totalTokens === whole
    const isApart = parts > known || (!isWithin && isReasoningApart) || totalTokens === whole + parts
    return Math.max(known + (isApart ? parts : 0), media.audioOutputTokens + media.imageOutputTokens)
  })
  const sum = (promptTokens ?? 0) + (completionTokens ?? 0)
  const isMore = promptTokens !== sentPrompt || completionTokens !== sentCompletion
  const isUnknown = {
    // Every answer has a prompt, but not every prompt has an answer: embeddings.
    promptTokens:
      (sentPrompt ?? totalTokens) === null || (isNamedApart && invalid.some((path) => /cache|input/i.test(path))),
    completionTokens:
      ((sentCompletion ?? totalTokens) === null &&
        (completion !== undefined || saysNull(usage, PATHS.completionTokens))) ||
      (isReasoningApart && invalid.some((path) => /output|reasoning|thought/i.test(path))),
  }
  const counts = {
    promptTokens,
    completionTokens,
    totalTokens: totalTokens !== null && isMore ? Math.max(totalTokens, sum) : totalTokens,
    cachedTokens,
    cacheWriteTokens,
    cacheWrite1hTokens: Math.min(cacheWriteTokens, tokensIn('cacheWrite1hTokens')),
    reasoningTokens,
    ...media,
    cachedAudioTokens: Math.min(cachedTokens, media.audioInputTokens, tokensIn('cachedAudioTokens')),
    cachedImageTokens: Math.min(cachedTokens, media.imageInputTokens, tokensIn('cachedImageTokens')),
    invalid,
    unknown: (['promptTokens', 'completionTokens'] as const).filter((whole) => isUnknown[whole]),
  }
  return (promptTokens ?? completionTokens ?? totalTokens) === null && invalid.length === 0 ? null : counts
}

/** Langfuse subtracts each part from the whole, whatever its name, and adds up all names that contain the word. */
function besides(usage: Fields, word: string, parts: (Found | undefined)[], invalid: string[]): number {
  let sum = 0
  for (const one of parts) if (one && !sentPath(usage, one.steps).includes(word)) sum += countIn(one.value) ?? 0
  for (const [name, value] of Object.entries(usage)) {
    if (name === word || !name.toLowerCase().includes(word) || /cost/i.test(name)) continue
    sum += countIn(value) ?? 0
    if (countIn(value ?? 0) === null && !isFields(value) && !invalid.includes(name)) invalid.push(name)
  }
  return sum
}

const saysNull = (usage: Fields, paths: readonly Path[]): boolean =>
  paths.some(({ steps }) => steps.length === 1 && steps[0]?.some((name) => usage[name] === null))

/** A count that is not sent stays unknown if a total is known, or if its parts are absent too. */
function atLeast(sent: number | null, total: number | null, withParts: (sent: number) => number): number | null {
  if (sent === null && total !== null) return null
  return withParts(sent ?? 0) || sent
}

function firstOf(usage: Fields, paths: readonly Path[]): Found | undefined {
  let withParts: Found | undefined
  for (const { name, steps, modality } of paths) {
    const value = modality === null ? valueAt(usage, steps, 0) : ofModality(valueAt(usage, steps, 0), modality)
    if (value === undefined || value === null) continue
    if (!isFields(value) || Array.isArray(value) || !WITH_PARTS.has(name)) return { name, steps, value }
    if (Object.values(value).some((member) => (member ?? null) !== null)) withParts ??= { name, steps, value }
  }
  return withParts
}

/** Some shapes have an object where others have a count. */
const WITH_PARTS: ReadonlySet<string> = new Set(['inputTokens', 'outputTokens', 'tokens'])

function valueAt(fields: unknown, steps: Path['steps'], at: number): unknown {
  const names = steps[at]
  if (names === undefined) return fields
  if (Array.isArray(fields)) return sumOf(fields.slice(0, ITEMS_MAX).map((item) => valueAt(item, steps, at)))
  if (!isFields(fields)) return undefined
  for (const name of names) {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (value !== undefined && value !== null) return valueAt(value, steps, at + 1)
  }
  return undefined
}

function sentPath(fields: unknown, [names, ...steps]: Path['steps']): string {
  const name = names?.find((one) => isFields(fields) && Object.hasOwn(fields, one) && (fields[one] ?? null) !== null)
  if (name === undefined || !isFields(fields)) return ''
  const innerFields = sentPath(fields[name], steps)
  return innerFields === '' ? name : `${name}.${innerFields}`
}

/** OpenAI Agents has a list of the details of each request. */
function sumOf(values: unknown[]): unknown {
  const sent = values.filter((value) => value !== undefined)
  const unread = sent.find((value) => countIn(value) === null)
  return unread === undefined && sent.length > 0
    ? sent.reduce<number>((sum, one) => sum + (countIn(one) ?? 0), 0)
    : unread
}

const ITEMS_MAX = 100

function ofModality(list: unknown, modality: string): unknown {
  if (!Array.isArray(list)) return undefined
  const item: unknown = list
    .slice(0, ITEMS_MAX)
    .find((one) => isFields(one) && (one['modality'] ?? one['ttl']) === modality)
  return isFields(item) ? (item['tokenCount'] ?? item['token_count'] ?? item['inputTokens']) : undefined
}
