/**
 * The border between a client and the integrations. The two may come from two copies of the SDK in one program, or from
 * neighbouring versions: ES modules beside CommonJS, the layers of Next.js, the module registries of Jest, two packages
 * of a workspace. So nothing here uses a class, a private field or a module's state to find something. The shared state
 * is in the client, under a key with a version number. The number changes when versions no longer work together.
 */
import type { Core } from './core.ts'
import { readSafely } from './recording/json.ts'

export const CORE = Symbol.for('tacho.core.1')

/** Key of a mark on each ToolBlockedError. */
export const BLOCKED = Symbol.for('tacho.ToolBlockedError')

/** Whether the error says that a guarded call waits for a person. */
export function isPending(error: unknown): boolean {
  return readSafely(() => BLOCKED in (error as object) && (error as { pending?: unknown }).pending !== null, false)
}

/** Undefined for a client of an incompatible version. */
export function coreIn(tacho: unknown): Core | undefined {
  return readSafely(() => (tacho as { [CORE]?: Core })[CORE], undefined)
}

/** @throws TypeError for a client of an incompatible version. */
export function coreOf(tacho: object): Core {
  const core = coreIn(tacho)
  if (!core) throw new TypeError('The client is of another version of @tacho/sdk.')
  return core
}

/** Returns a value that all integrations of a client share. `make` creates it on first use. */
export function sharedIn<T>(core: Core, name: string, make: () => T): T {
  const { shared } = core
  if (!shared.has(name)) shared.set(name, make())
  return shared.get(name) as T
}

const warned = new Set<string>()

/**
 * If the client's version is incompatible, warns once that nothing is recorded. The host continues as without the SDK.
 */
export function canRecord(tacho: unknown, what: string): boolean {
  if (coreIn(tacho)) return true
  const message = `tacho: ${what} are not recorded: the client is of another version of @tacho/sdk. Install one version.`
  if (!warned.has(what)) readSafely(() => console.warn(message), undefined)
  warned.add(what)
  return false
}

/** Whether a function has the mark, from any copy of the SDK: it is already wrapped. */
export function isMarked(hostValue: unknown, mark: symbol): boolean {
  return readSafely(() => (hostValue as Record<symbol, unknown>)[mark] === true, false)
}

export function mark(hostValue: object, mark: symbol): void {
  readSafely(() => Object.defineProperty(hostValue, mark, { value: true }), undefined)
}
