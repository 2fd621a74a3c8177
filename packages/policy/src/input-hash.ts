import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import canonicalize from 'canonicalize'
import { copyJson, NotPlainJson } from './json.ts'
import { POLICY_LIMITS } from './limits.ts'

const VERSION = 'tacho-input-1'

/**
 * The hash that binds an approval to one tool and one input: lowercase hex SHA-256 of the RFC 8785 text of
 * `["tacho-input-1", toolName, input]` in UTF-8. Key order does not matter; a missing or null input is {}.
 * @throws TypeError with the path if the input is not plain JSON (a Date, NaN, a cycle, a lone surrogate, …): two such
 * inputs could have the same JSON.
 */
export function inputHash(toolName: string, input: unknown): string {
  const given = input ?? {}
  copyJson(given, { values: Infinity, levels: POLICY_LIMITS.inputLevels })
  let text
  try {
    text = canonicalize([VERSION, toolName, given])
  } catch {
    throw new NotPlainJson([], 'or the tool name is not well-formed Unicode')
  }
  // Not WebCrypto: it is asynchronous, and missing on pages over plain http.
  return bytesToHex(sha256(utf8ToBytes(text as string)))
}
