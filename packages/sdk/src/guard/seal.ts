/**
 * Hashes an input so that a reader of the masked input can check the hash: the values that masking changes are sealed
 * (packages/policy/src/input/sealed-input.ts). Without masks, in metadata-only mode, and where masking fails, the hash
 * is that of the plain input.
 */
import type { Core, Hashed, HashInput } from '../core.ts'
import { readSafely } from '../recording/json.ts'

/** Parts of the policy package that seals need. */
export interface SealEngine {
  inputHash(toolName: string, input: unknown): string
  sealInput(key: Uint8Array, input: unknown, masked: readonly string[]): Readonly<Record<string, string>>
  sealedInputHash(toolName: string, input: unknown, seals: Readonly<Record<string, string>>): string
}

/** Text that the API key signs, as in `sealKey` of the policy package. */
export const SEAL_KEY = 'tacho-seal-1'

/** @param sealKey in hex. It stays the same for a client when its API key changes. Undefined: there is no API key. */
export function createHashInput(core: Core, engine: SealEngine, sealKey: string | undefined): HashInput {
  const isSealing = core.settings.capture === 'full' && sealKey !== undefined
  const key = isSealing ? Uint8Array.from(sealKey.match(/../g) ?? [], (byte) => parseInt(byte, 16)) : undefined
  return (toolName, input) => {
    if (input === null) return { inputHash: null, inputSeals: null }
    const sealed = key && readSafely(() => sealedHash(toolName, input, key), undefined)
    return sealed ?? { inputHash: readSafely(() => engine.inputHash(toolName, input), null), inputSeals: null }
  }

  function sealedHash(toolName: string, input: object, sealingKey: Uint8Array): Hashed | undefined {
    const text = JSON.stringify(input)
    const masked = core.writing().json?.(text) ?? text
    if (masked === text) return undefined
    const inputSeals = engine.sealInput(sealingKey, input, changedPointers(input, JSON.parse(masked)))
    return { inputHash: engine.sealedInputHash(toolName, input, inputSeals), inputSeals }
  }
}

/**
 * JSON Pointers of the smallest values that differ. An object or list counts as a whole if its own keys or length
 * differ.
 */
export function changedPointers(rawValue: unknown, shown: unknown, pointer = ''): string[] {
  if (Object.is(rawValue, shown)) return []
  if (!isContainer(rawValue) || !isContainer(shown)) return [pointer]
  const names = Object.keys(rawValue)
  const shownNames = Object.keys(shown)
  const isSame = Array.isArray(rawValue) === Array.isArray(shown) && names.length === shownNames.length
  if (!isSame || names.some((name, at) => name !== shownNames[at])) return [pointer]
  return names.flatMap((name) => {
    const at = `${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return changedPointers((rawValue as Named)[name], (shown as Named)[name], at)
  })
}

type Named = Readonly<Record<string, unknown>>

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
