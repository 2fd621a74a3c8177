/** Gemini: `generateContent` and `streamGenerateContent`. */
import { callUsage } from '../../../../sdk/src/integrations/call-usage.ts'
import { fields, set, text, type Fields } from '../../../../sdk/src/integrations/host.ts'
import type { ModelResult } from '../../../../sdk/src/integrations/model-call.ts'
import type { Collector } from '../../../../sdk/src/integrations/model-stream.ts'
import type { Message } from '../../../../sdk/src/integrations/messages.ts'
import { listOf, namedCall, type Protocol } from './protocol.ts'

const MODEL = /\/models\/([^/:]+):/

export const GEMINI: Protocol = {
  name: 'gemini',
  request(body, path) {
    const { contents, systemInstruction, system_instruction: system, tools } = body
    const instruction = systemInstruction ?? system
    const messages = [
      ...(instruction === undefined ? [] : messagesOf([{ ...fields(instruction), role: 'system' }])),
      ...messagesOf(contents),
    ]
    const declared = listOf(tools).flatMap((tool) =>
      listOf(tool['functionDeclarations'] ?? tool['function_declarations']),
    )
    const names = declared.flatMap(({ name }) => text(name) ?? [])
    return set({
      model: MODEL.exec(path)?.[1],
      provider: 'google',
      messages,
      tools: tools === undefined ? undefined : names,
    })
  },
  result: (answer) => resultOf(answer['modelVersion'], answer['usageMetadata'], candidatesOf(answer), blockIn(answer)),
  stream: () => new GeminiStream(),
  refusing: {
    named: (event) =>
      candidatesOf(event)
        .flatMap(({ parts }) => parts.flatMap((one) => [one['functionCall'], one['function_call']]))
        .flatMap((call) => namedCall(fields(call)['id'], fields(call)['name']) ?? []),
    whole: (answer, refusals) => replaced(answer, refusals, new Map()),
    stream(refusals) {
      const places: Places = new Map()
      return (event) => [replaced(event, refusals, places)]
    },
  },
}

const callIn = (contentPart: Fields): unknown => contentPart['functionCall'] ?? contentPart['function_call']

/** For each candidate, by index: how many calls of each name it has. */
type Places = Map<unknown, Map<unknown, number>>

function replaced(answer: Fields, refusals: ReadonlyMap<string, string>, allPlaces: Places): Fields {
  const candidates = listOf(answer['candidates']).map((candidate) => {
    const content = fields(candidate['content'])
    const { index = 0 } = candidate
    const places = allPlaces.get(index) ?? new Map<unknown, number>()
    allPlaces.set(index, places)
    const parts = listOf(content['parts']).map((contentPart) => {
      const [call] = callsOf([contentPart], places)
      const refusal = call && refusals.get(call.id)
      return refusal === undefined ? contentPart : { text: refusal }
    })
    return content['parts'] === undefined ? candidate : { ...candidate, content: { ...content, parts } }
  })
  return { ...answer, candidates }
}

interface Candidate {
  readonly parts: readonly Fields[]
  readonly finishReason: unknown
}

function candidatesOf(answer: Fields): Candidate[] {
  return listOf(answer['candidates']).map(({ content, finishReason }) => ({
    parts: listOf(fields(content)['parts']),
    finishReason,
  }))
}

/** Set if Gemini refused the prompt. */
const blockIn = ({ promptFeedback }: Fields): unknown => fields(promptFeedback)['blockReason']

function resultOf(model: unknown, usage: unknown, candidates: readonly Candidate[], block: unknown): ModelResult {
  const messages = candidates.flatMap(({ parts }) => messagesOf([{ role: 'model', parts }]))
  return {
    model,
    usage: callUsage(usage),
    output: messages.length > 1 ? messages : messages[0],
    finishReason: candidates[0]?.finishReason ?? block,
    asked: candidates.flatMap(({ parts, finishReason }) => {
      const calls = callsOf(parts).map(({ id, name, arguments: args }) => ({ type: 'tool_call', id, name, args }))
      // Gemini has one finish reason, STOP, for texts and for calls.
      return calls.map((call) => ({ ...call, finish_reason: finishReason }))
    }),
  }
}

interface GeminiCall {
  readonly id: string
  readonly name: unknown
  readonly arguments: unknown
}

/** Older models give calls no ids. The name and its place in the turn identify a call. */
function callsOf(parts: readonly Fields[], places = new Map<unknown, number>()): GeminiCall[] {
  return parts.flatMap((contentPart) => {
    const call = callIn(contentPart)
    if (call === undefined) return []
    const { id, name, args } = fields(call)
    const place = places.get(name) ?? 0
    places.set(name, place + 1)
    return [{ id: text(id) ?? nameOf(name, place), name, arguments: args ?? {} }]
  })
}

const nameOf = (name: unknown, place: number): string => `${String(name)}#${place}`

function messagesOf(contents: unknown): Message[] {
  if (typeof contents === 'string') return [{ role: 'user', content: contents }]
  const contentList = Array.isArray(contents) ? contents : contents === undefined ? [] : [contents]
  return contentList.flatMap((each): Message[] => {
    const { role, parts: contentParts } = fields(each)
    const parts = listOf(contentParts)
    const results = resultsOf(parts)
    const calls = callsOf(parts)
    const left = parts.filter(
      (contentPart) =>
        !['functionCall', 'function_call', 'functionResponse', 'function_response'].some((name) => name in contentPart),
    )
    const texts = left.filter(({ thought }) => thought !== true).map((textPart) => text(textPart['text']) ?? textPart)
    const content =
      texts.length === 0 ? undefined : texts.every((textPart) => typeof textPart === 'string') ? texts.join('') : texts
    if (results.length > 0 && content === undefined) return results
    const shownMessage = { role: role === 'model' ? 'assistant' : (role ?? 'user'), content }
    return [...results, set({ ...shownMessage, toolCalls: calls.length > 0 ? calls : undefined })]
  })
}

function resultsOf(parts: readonly Fields[]): Message[] {
  const places = new Map<unknown, number>()
  return parts.flatMap((contentPart) => {
    const result = contentPart['functionResponse'] ?? contentPart['function_response']
    if (result === undefined) return []
    const { id, name, response } = fields(result)
    const place = places.get(name) ?? 0
    places.set(name, place + 1)
    return [{ role: 'tool', toolCallId: text(id) ?? nameOf(name, place), content: response }]
  })
}

/** Each event is a piece of an answer with its usage so far. */
class GeminiStream implements Collector {
  readonly #candidates = new Map<unknown, { parts: Fields[]; finishReason: unknown }>()
  #model: unknown
  #usage: unknown
  #block: unknown

  get isComplete(): boolean {
    const all = [...this.#candidates.values()]
    return all.length > 0 && all.every(({ finishReason }) => finishReason !== undefined)
  }

  add(chunk: Fields): boolean {
    this.#model = chunk['modelVersion'] ?? this.#model
    this.#usage = chunk['usageMetadata'] ?? this.#usage
    this.#block = blockIn(chunk) ?? this.#block
    let hasPieces = false
    for (const { index = 0, content, finishReason } of listOf(chunk['candidates'])) {
      const candidate = this.#candidates.get(index) ?? { parts: [], finishReason: undefined }
      candidate.finishReason = finishReason ?? candidate.finishReason
      for (const contentPart of listOf(fields(content)['parts']))
        hasPieces = join(candidate.parts, contentPart) || hasPieces
      if (this.#candidates.size < CANDIDATES_MAX) this.#candidates.set(index, candidate)
    }
    return hasPieces
  }

  result(): ModelResult {
    return resultOf(this.#model, this.#usage, [...this.#candidates.values()], this.#block)
  }
}

const CANDIDATES_MAX = 256

/** Joins the pieces of a text into one part. */
function join(parts: Fields[], contentPart: Fields): boolean {
  const last = parts.at(-1)
  const isText = (pieceOf: Fields | undefined) => typeof pieceOf?.['text'] === 'string'
  if (isText(contentPart) && isText(last) && last?.['thought'] === contentPart['thought']) {
    parts[parts.length - 1] = {
      ...last,
      ...contentPart,
      text: `${String(last?.['text'])}${String(contentPart['text'])}`,
    }
  } else parts.push(contentPart)
  return true
}
