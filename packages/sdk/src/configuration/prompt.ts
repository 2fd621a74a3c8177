import type { DeployedPrompt } from './configuration.ts'

/** The `{{ name }}` placeholders of a literal text; any name if the compiler does not know the text. */
export type VariablesOf<Text extends string> = string extends Text
  ? Record<string, string | number>
  : { readonly [Name in NamesIn<Text>]: string | number }

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
   * The content with each `{{ name }}` replaced by its value. Placeholders inside values are not replaced. A
   * placeholder without a value stays unchanged.
   */
  render(...variables: {} extends Variables ? [variables?: Variables] : [variables: Variables]): string
}

const PLACEHOLDER = /\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}/g

/** @internal */
export function toPrompt<Variables extends Readonly<Record<string, string | number>>>(
  name: string,
  fallback: string,
  deployed: DeployedPrompt | undefined,
): Prompt<Variables> {
  const content = deployed?.content ?? fallback
  return Object.freeze({
    name,
    content,
    version: deployed?.version ?? null,
    versionId: deployed?.versionId ?? null,
    isFallback: deployed === undefined,
    render: (variables?: Variables) =>
      content.replace(PLACEHOLDER, (placeholder, variable: string) =>
        variables && Object.hasOwn(variables, variable) ? String(variables[variable]) : placeholder,
      ),
  })
}
