/**
 * Reads payloads by their conventions. A payload may contain anything: only the JSON view shows members that do not
 * follow the conventions.
 */
export type Json = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function textAt(payload: Json, key: string): string | null {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined
  return typeof value === 'string' && value !== '' ? value : null
}

export function numberAt(payload: Json, key: string): number | null {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined
  return typeof value === 'number' && Number.isFinite(value) ? value : null
}

export interface Message {
  role: string
  text: string
  /** Addresses of its images; most are `data:` addresses. */
  images: string[]
  toolCalls: { name: string; input: unknown }[]
}

/** Chat messages in the shapes of our integrations, OpenAI, Anthropic and the AI SDK. */
export function messagesAt(payload: Json, key: string): Message[] {
  const value = Object.hasOwn(payload, key) ? payload[key] : undefined
  const list = Array.isArray(value) ? value : [value]
  return list.map(messageOf).filter((message) => message !== null)
}

function messageOf(value: unknown): Message | null {
  if (typeof value === 'string') return { role: 'assistant', text: value, images: [], toolCalls: [] }
  if (!isObject(value)) return null
  const content = value['content'] ?? value['text']
  const toolCalls = [...listedCalls(value['toolCalls'] ?? value['tool_calls']), ...anthropicCalls(content)]
  const [text, images] = [contentText(content), contentImages(content)]
  if (text === '' && images.length === 0 && toolCalls.length === 0) return null
  return { role: textAt(value, 'role') ?? 'assistant', text, images, toolCalls }
}

/** The text of a message's content: a text, or parts of which some are texts. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((contentPart: unknown) =>
      typeof contentPart === 'string' ? contentPart : isObject(contentPart) ? (textAt(contentPart, 'text') ?? '') : '',
    )
    .filter((text) => text !== '')
    .join('\n')
}

/** Images among the parts of a message's content, in the shapes of OpenAI, Anthropic, Gemini and the AI SDK. */
export function contentImages(content: unknown): string[] {
  if (!Array.isArray(content)) return []
  return content
    .filter(isObject)
    .flatMap((contentPart) => imageOf(contentPart) ?? [])
    .slice(0, IMAGES_MAX)
}

/** Only the JSON view shows further images. */
const IMAGES_MAX = 20

function imageOf(contentPart: Json): string | null {
  const { image_url: imageUrl, source, image, inlineData, inline_data: inline } = contentPart
  if (isObject(imageUrl)) return textAt(imageUrl, 'url')
  if (typeof imageUrl === 'string') return imageUrl
  if (isObject(source)) return textAt(source, 'url') ?? dataAddress(source['media_type'], source['data'])
  if (typeof image === 'string') return /^\w+:/.test(image) ? image : dataAddress(typeOf(contentPart), image)
  const data = isObject(inlineData) ? inlineData : isObject(inline) ? inline : contentPart
  return dataAddress(typeOf(data), data['data'])
}

const typeOf = (contentPart: Json): unknown =>
  contentPart['mediaType'] ?? contentPart['mimeType'] ?? contentPart['mime_type']

/** Null if it is no image. */
function dataAddress(type: unknown, data: unknown): string | null {
  if (typeof type !== 'string' || typeof data !== 'string' || !type.startsWith('image/')) return null
  return data.startsWith('data:') ? data : `data:${type};base64,${data}`
}

function listedCalls(value: unknown): Message['toolCalls'] {
  if (!Array.isArray(value)) return []
  return value.filter(isObject).flatMap((call) => {
    const made = isObject(call['function']) ? call['function'] : call
    const name = textAt(made, 'name') ?? textAt(made, 'toolName')
    return name === null ? [] : [{ name, input: parsed(made['arguments'] ?? made['input']) }]
  })
}

function anthropicCalls(content: unknown): Message['toolCalls'] {
  if (!Array.isArray(content)) return []
  return content.filter(isObject).flatMap((contentPart) => {
    const name = contentPart['type'] === 'tool_use' ? textAt(contentPart, 'name') : null
    return name === null ? [] : [{ name, input: contentPart['input'] }]
  })
}

/** Parses JSON inside a text if it is an object or a list. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** A value as one short line. */
export function inShort(value: unknown, chars = 140): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  return text.length > chars ? `${text.slice(0, chars)}…` : text
}
