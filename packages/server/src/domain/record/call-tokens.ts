/** Parts of a call's tokens. Each part has its own price. */
import type { CallCounts } from '@tacho/contract/record/usage-shapes.ts'
import { LONG_CONTEXTS } from '@tacho/contract/engine/words.ts'
import { partsOf, UNKNOWN_USAGE, withMedia, withUnknown, type CallTokens } from '../../storage/runs/uncosted.ts'

/** Null: the call has no tokens. */
export function callTokens(counts: CallCounts | null): CallTokens | null {
  if (counts === null) return UNKNOWN
  const { promptTokens, completionTokens, totalTokens } = counts
  const prompt = promptTokens ?? Math.max(0, (totalTokens ?? 0) - (completionTokens ?? 0))
  const completion = completionTokens ?? Math.max(0, promptTokens === null ? 0 : (totalTokens ?? 0) - prompt)
  const { cacheWriteTokens, cacheWrite1hTokens, reasoningTokens, cachedAudioTokens, cachedImageTokens } = counts
  // As many tokens as the prompt has may be cached, which are the cheapest, if nobody can read how many.
  const isWithin = !counts.unknown.includes('promptTokens')
  const isReadUnknown = isWithin && counts.invalid.some((path) => /cache(?!.*(?:creat|writ))/i.test(path))
  const cachedTokens = isReadUnknown ? Math.max(0, prompt - cacheWriteTokens) : counts.cachedTokens
  const cached = cachedTokens + cacheWriteTokens
  // Beside a total alone, the parts may say more.
  const all = Math.max(prompt, cached)
  const output = Math.max(completion, reasoningTokens)
  const isUnknown = counts.unknown.length > 0 || counts.invalid.some((path) => /cache|audio|image/i.test(path))
  if (all + output === 0) return isUnknown || counts.invalid.length > 0 ? UNKNOWN : null
  // Some shapes do not say which of the cached tokens are audio: those count as text.
  const [audioInput, imageInput, input] = split(all - cached, [
    counts.audioInputTokens - cachedAudioTokens,
    counts.imageInputTokens - cachedImageTokens,
  ])
  const [cachedAudio, cachedImage, cacheRead] = split(cachedTokens, [cachedAudioTokens, cachedImageTokens])
  const answered = output - reasoningTokens
  const [audioOutput, imageOutput, text] = split(answered, [counts.audioOutputTokens, counts.imageOutputTokens])
  const media = { audioInput, cachedAudio, imageInput, cachedImage, audioOutput, imageOutput }
  const hasMedia = Object.values(media).some((tokens) => tokens > 0)
  const context = hasMedia ? withMedia(contextOf(all)) : contextOf(all)
  return {
    context: isUnknown ? withUnknown(context) : context,
    input,
    cacheRead,
    cacheWrite: cacheWriteTokens - cacheWrite1hTokens,
    cacheWrite1h: cacheWrite1hTokens,
    output: text,
    reasoning: reasoningTokens,
    ...media,
  }
}

/** Two parts of a whole, and the rest of it. */
function split(whole: number, [one, other]: [number, number]): [number, number, number] {
  const first = Math.min(one, whole)
  const second = Math.min(other, whole - first)
  return [first, second, whole - first - second]
}

const UNKNOWN: CallTokens = { context: UNKNOWN_USAGE, ...partsOf(() => 0) }

function contextOf(inputTokens: number): number {
  return LONG_CONTEXTS.findLast((start) => inputTokens > start) ?? 0
}
