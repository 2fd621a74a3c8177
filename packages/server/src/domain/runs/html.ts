/** A class, so that client data can never look like HTML. */
export class Html {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export function html(parts: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  let text = parts[0] ?? ''
  for (const [index, value] of values.entries()) text += textOf(value) + (parts[index + 1] ?? '')
  return new Html(text)
}

function textOf(value: string | number | Html | Html[]): string {
  if (value instanceof Html) return value.text
  if (Array.isArray(value)) return value.map(({ text }) => text).join('')
  return escaped(String(value))
}

/** Markup, characters that move the text around them, and controls. Line breaks and tabs stay. */
// oxlint-disable-next-line no-control-regex
const UNSAFE = /[&<>"'\0-\b\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
])

/** Controls and direction marks become visible: they could show another order than is stored. */
function escaped(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => ENTITIES.get(character) ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
