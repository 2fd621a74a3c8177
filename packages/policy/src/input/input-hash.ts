import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'
import { inputText } from './input-text.ts'

/**
 * The hash that binds an approval to one tool and one input: lowercase hex SHA-256 of `inputText` in UTF-8.
 * @throws TypeError as `inputText` does.
 */
export function inputHash(toolName: string, input: unknown): string {
  // WebCrypto is asynchronous, and missing on pages over plain http.
  return bytesToHex(sha256(utf8ToBytes(inputText(toolName, input))))
}
