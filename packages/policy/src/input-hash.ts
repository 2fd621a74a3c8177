import canonicalize from 'canonicalize'
import { copyJson, NotPlainJson } from './json.ts'
import { POLICY_LIMITS } from './limits.ts'
import { sha256 } from './sha256.ts'

const VERSION = 'tacho-input-1'

/**
 * The hash that binds an approval to one tool and one input: lowercase hex SHA-256 of the UTF-8 of the RFC 8785 text of
 * `["tacho-input-1", toolName, input]`. The order of keys does not matter; an absent or null input is {}.
 * @throws TypeError naming the place when the input is not plain JSON (a Date, NaN, a cycle, half a surrogate pair, …):
 * two such inputs could look the same in JSON.
 */
export function inputHash(toolName: string, input: unknown): string {
  const given = input ?? {}
  copyJson(given, { values: Infinity, levels: POLICY_LIMITS.inputLevels })
  let text
  try {
    text = canonicalize([VERSION, toolName, given])
  } catch {
    throw new NotPlainJson([], 'or the name of the tool is not well-formed Unicode')
  }
  return sha256(text as string)
}
