import canonicalize from 'canonicalize'
import { copyJson, NotPlainJson } from './json.ts'
import { POLICY_LIMITS } from '../limits.ts'

const VERSION = 'tacho-input-1'

/**
 * The text whose hash binds an approval to one tool and one input: RFC 8785 of `["tacho-input-1", toolName, input]`. The order
 * of keys does not matter; a missing or null input is {}.
 * @throws TypeError with the path if the input is not plain JSON (a Date, NaN, a cycle, a lone surrogate, …): two such
 * inputs could have the same JSON.
 */
export function inputText(toolName: string, input: unknown): string {
  const inputValue = input ?? {}
  copyJson(inputValue, { values: Infinity, levels: POLICY_LIMITS.inputLevels })
  try {
    return canonicalize([VERSION, toolName, inputValue]) as string
  } catch {
    throw new NotPlainJson([], 'or the tool name is not well-formed Unicode')
  }
}
