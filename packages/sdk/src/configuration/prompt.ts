import { isError, isHidden, markOf, readSafely } from '../recording/json.ts'
import type { DeployedPrompt } from './configuration.ts'

/** Objects and lists are written as JSON. */
export type PromptValue = string | number | boolean | object | null

/** The `{{ name }}` placeholders of a literal text; any name if the compiler does not know the text. */
export type VariablesOf<Text extends string> = string extends Text
  ? Record<string, PromptValue>
  : { readonly [Name in NamesIn<Text>]: PromptValue }

type NamesIn<Text extends string> = Text extends `${string}{{${infer Name}}}${infer Rest}`
  ? Trimmed<Name> | NamesIn<Rest>
  : never

type Trimmed<Text extends string> = Text extends ` ${infer Rest}` | `${infer Rest} ` ? Trimmed<Rest> : Text

/** A prompt: the deployed version, or the fallback from the code if none is deployed. */
export interface Prompt<Variables> {
  readonly name: string
  /** Includes its placeholders. */
  readonly content: string
  /** Version of the deployed prompt; null for the fallback. */
  readonly version: string | null
  /** Attach it as `promptVersionId`; null for the fallback. Inside a run, the SDK attaches it. */
  readonly versionId: string | null
  readonly isFallback: boolean
  /**
   * The content with each `{{ name }}` replaced by its value; objects and lists as JSON, also a Map, a Set and an error. Placeholders inside values are not
   * replaced. A placeholder without a value stays unchanged, and a diagnostic names it.
   */
  render(...variables: {} extends Variables ? [variables?: Variables] : [variables: Variables]): string
}

const PLACEHOLDER = /\{\{([^{}]+)\}\}/g

/** @internal @param onMissing receives the name of a placeholder that nothing filled. */
export function toPrompt<Variables extends Readonly<Record<string, PromptValue>>>(
  name: string,
  fallback: string,
  deployed: DeployedPrompt | undefined,
  onMissing: (variable: string) => void,
): Prompt<Variables> {
  const content = deployed?.content ?? fallback
  return Object.freeze({
    name,
    content,
    version: deployed?.version ?? null,
    versionId: deployed?.versionId ?? null,
    isFallback: deployed === undefined,
    render(variables?: Variables) {
      const givenValues = new Map<string, unknown>(Object.entries(variables ?? {}))
      return content.replace(PLACEHOLDER, (placeholder, padded: string) => {
        const variable = padded.trim()
        const value = givenValues.get(variable)
        if (value !== undefined) return textOf(value)
        // Leave `{{#if}}` and the like: they belong to a template language.
        if (/^[\p{L}\d_]/u.test(variable)) onMissing(variable)
        return placeholder
      })
    },
  })
}

/**
 * Writes objects as JSON, because `String` would write `[object Object]`. A Map, a Set or an error is converted first:
 * JSON would write `{}`. A value that JSON writes as a text, such as a date, has no quotes, as in Python.
 */
function textOf(value: unknown): string {
  return readSafely(() => {
    if (typeof value !== 'object') return String(value as string)
    const json = JSON.stringify(value, plain)
    return json.startsWith('"') ? (JSON.parse(json) as string) : json
  }, '[unreadable]')
}

function plain(this: unknown, key: string, value: unknown): unknown {
  // Read the original value: a Buffer's own `toJSON` lists its bytes.
  const variableValue = (this as Record<string, unknown>)[key]
  if (ArrayBuffer.isView(variableValue)) return markOf(variableValue)
  if (typeof value === 'number' && !Number.isFinite(value)) return `[${value}]`
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Map) return Object.fromEntries(value)
  if (value instanceof Set) return [...value]
  if (isError(value)) return { name: value.name, message: value.message }
  return typeof value === 'object' && value && isHidden(value) ? markOf(value) : value
}
