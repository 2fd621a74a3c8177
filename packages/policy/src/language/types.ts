/**
 * Types of expressions. `json` is a value of `tool.input` whose type is known only at the call. It is CEL's dyn, except that
 * its numbers are doubles and it has no times. Map keys are texts.
 */
export type Type =
  | {
      readonly name: 'bool' | 'int' | 'double' | 'string' | 'null' | 'timestamp' | 'duration' | 'type' | 'json' | 'dyn'
    }
  | { readonly name: 'list'; readonly of: Type }
  /** @property keys the only keys of its maps, if they are known. */
  | { readonly name: 'map'; readonly of: Type; readonly keys?: readonly string[] }

export const BOOL: Type = { name: 'bool' }
export const INT: Type = { name: 'int' }
export const DOUBLE: Type = { name: 'double' }
export const STRING: Type = { name: 'string' }
export const NULL: Type = { name: 'null' }
export const TIMESTAMP: Type = { name: 'timestamp' }
export const DURATION: Type = { name: 'duration' }
export const TYPE: Type = { name: 'type' }
export const JSON_VALUE: Type = { name: 'json' }
export const DYN: Type = { name: 'dyn' }
/** An element of `run.calls`. */
export const CALL: Type = { name: 'map', of: JSON_VALUE, keys: ['tool', 'labels', 'input', 'ok', 'decision'] }
export const LIST: Type = listOf(DYN)
export const MAP: Type = mapOf(DYN)

export function listOf(of: Type): Type {
  return { name: 'list', of }
}

export function mapOf(of: Type): Type {
  return { name: 'map', of }
}

export function isDynamic({ name }: Type): boolean {
  return name === 'dyn' || name === 'json'
}

export function isNumeric({ name }: Type): boolean {
  return name === 'int' || name === 'double'
}

/** Text of a type for people: `list<string>`, or dyn if the type is known only at the call. */
export function showType(type: Type): string {
  if ('of' in type) return type.name === 'list' ? `list<${showType(type.of)}>` : `map<string, ${showType(type.of)}>`
  return type.name === 'json' ? 'dyn' : type.name
}

/** Whether a value of type `given` can be an argument of type `asked`. */
export function accepts(asked: Type, givenType: Type): boolean {
  if (asked.name === 'dyn' || givenType.name === 'dyn') return true
  if (givenType.name === 'json') return !['int', 'timestamp', 'duration', 'type'].includes(asked.name)
  if ('of' in asked) return 'of' in givenType && asked.name === givenType.name && accepts(asked.of, givenType.of)
  return asked.name === givenType.name
}

/** Whether `==` can be true for values of two types; an int can equal a double. */
export function comparable(a: Type, b: Type): boolean {
  if (isDynamic(a) || isDynamic(b)) return true
  if (isNumeric(a) && isNumeric(b)) return true
  if ('of' in a) return 'of' in b && a.name === b.name && comparable(a.of, b.of)
  return a.name === b.name
}

/** The common type of two types. */
export function join(a: Type, b: Type): Type {
  if ('of' in a && 'of' in b && a.name === b.name) return { name: a.name, of: join(a.of, b.of) }
  return a.name === b.name && !('of' in a) ? a : DYN
}

/** Argument types, with the receiver of a method first, and the result type. */
export type Signature = readonly [arguments: readonly Type[], result: Type]
