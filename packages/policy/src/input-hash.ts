import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import canonicalize from 'canonicalize'
import { copyJson, NotPlainJson } from './json.ts'
import { POLICY_LIMITS } from './limits.ts'

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
  // Not WebCrypto: it answers later, and not at all on pages served over plain http; a tool call waits for this hash.
  return bytesToHex(sha256(utf8ToBytes(text as string)))
}
