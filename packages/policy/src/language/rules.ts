import { TIMESTAMP_FIELDS, zoneOf } from '../evaluation/clock.ts'
import { compilePattern, foldedCharsOf, repeatsOf, tooManyFolded, tooManyRepeats } from '../pattern/compile-pattern.ts'
import { POLICY_LIMITS } from '../limits.ts'
import { TOO_DEEP } from './parse.ts'
import { type Fault, inOrder, positionAt } from './position.ts'
import { FIELDS, OUTPUT, TYPE_NAMES } from './profile.ts'
import { FUNCTION_SIGNATURES, METHOD_SIGNATURES } from './signatures.ts'
import { childrenOf, literalText, LOOPS, loopOf, type Node, type NodeOf } from './syntax.ts'

// All functions and methods, with their argument counts.
const CALLS = [...FUNCTION_SIGNATURES.keys(), 'has/1']
const METHOD_CALLS = [...METHOD_SIGNATURES.keys(), ...LOOPS]

type Place = { readonly level: number; readonly loops: number; readonly variables: ReadonlySet<string> }

/**
 * Rules of the profile beyond CEL's grammar and types: only declared names and functions, limited nesting, patterns and
 * zones as valid literals. Returns all faults, in source order.
 */
export function checkRules(root: Node, source: string, ofLabels: boolean): Fault[] {
  const faults: Fault[] = []
  let repeats = 0
  let foldedChars = 0

  const refuse = (node: { start: number; end: number }, message: string) => {
    faults.push({ message, position: positionAt(source, node.start, node.end) })
  }

  function visit(node: Node, place: Place): void {
    if (place.level > POLICY_LIMITS.nestingLevels) {
      // Everything below is also nested too deeply; report it once.
      if (faults.at(-1)?.message !== TOO_DEEP) refuse(node, TOO_DEEP)
      return
    }
    const inner = { ...place, level: place.level + 1 }
    switch (node.kind) {
      case 'name':
        return visitName(node, node.name, place.variables)
      case 'field':
        return visitField(node, inner)
      case 'call':
        return visitCall(node, inner)
      case 'method':
        return visitMethod(node, inner)
      case 'map':
        visitKeys(node.entries.map(({ key }) => key))
        break
    }
    for (const child of childrenOf(node)) visit(child, inner)
  }

  function visitName(node: Node, name: string, variables: ReadonlySet<string>): void {
    if (variables.has(name) || TYPE_NAMES.some((type) => type === name)) return
    const fields = FIELDS.get(name)
    if (!fields) return refuse(node, `unknown name ${name}; use one of ${[...FIELDS.keys()].join(', ')}`)
    const names = fields.map((field) => `${name}.${field}`)
    if (names.length > 0) refuse(node, `${name} needs a field; use one of ${names.join(', ')}`)
  }

  function visitField(node: NodeOf<'field'>, place: Place): void {
    const { object, key } = node
    const root = object.kind === 'name' && !place.variables.has(object.name) ? object.name : ''
    const fields = FIELDS.get(root)
    if (!fields) return visit(object, place)
    if (fields.includes(key) || (ofLabels && `${root}.${key}` === OUTPUT)) return
    const hint = fields.length > 0 ? `use one of ${fields.join(', ')}` : 'it has no fields'
    refuse(node, `${root} has no field ${key}; ${hint}`)
  }

  function visitCall(node: NodeOf<'call'>, place: Place): void {
    const { name, values } = node
    checkCall(node, CALLS, name, values.length)
    for (const value of values) visit(value, place)
    if (name === 'has' && values.length === 1 && values[0]?.kind !== 'field') {
      refuse(node, 'has needs a field, for example has(tool.input.amount); for other keys write "key" in tool.input')
    }
  }

  function visitMethod(node: NodeOf<'method'>, place: Place): void {
    const { name, receiver, values } = node
    visit(receiver, place)
    checkCall(node, METHOD_CALLS, name, values.length)
    if (loopOf(node)) return visitLoop(values, place)
    const [first] = values
    if (first && name === 'matches') visitPattern(first)
    if (first && TIMESTAMP_FIELDS.has(name)) visitZone(first)
    for (const value of values) visit(value, place)
  }

  function checkCall(node: Node, known: readonly string[], name: string, values: number): void {
    if (known.includes(`${name}/${values}`)) return
    const counts = known.filter((call) => call.startsWith(`${name}/`)).map((call) => call.slice(name.length + 1))
    if (counts.length === 0) return refuse(node, `${name} is not part of the policy language`)
    refuse(
      node,
      `${name} takes ${counts.join(' or ')} ${counts.at(-1) === '1' ? 'argument' : 'arguments'}, not ${values}`,
    )
  }

  function visitLoop([variable, ...bodies]: readonly Node[], place: Place): void {
    if (variable?.kind !== 'name') {
      if (variable) refuse(variable, 'the first argument of a loop must be a variable name')
      return
    }
    const { name } = variable
    if (FIELDS.has(name) || TYPE_NAMES.some((type) => type === name)) {
      refuse(variable, `${name} already has a meaning; choose another name`)
    }
    if (place.loops >= POLICY_LIMITS.comprehensionLevels) {
      return refuse(variable, `loops must be nested at most ${POLICY_LIMITS.comprehensionLevels} levels deep`)
    }
    const inside = { ...place, loops: place.loops + 1, variables: new Set([...place.variables, name]) }
    for (const body of bodies) visit(body, inside)
  }

  function visitPattern(node: Node): void {
    const pattern = literalText(node)
    if (pattern === undefined)
      return refuse(node, 'the pattern must be a text literal, because only literals can be checked')
    repeats += repeatsOf(pattern)
    foldedChars += foldedCharsOf(pattern)
    const fault = compileWithin(node, pattern)
    if (fault) refuse(node, fault.message)
  }

  function compileWithin(node: Node, pattern: string): ReturnType<typeof compilePattern> {
    if (repeats > POLICY_LIMITS.patternRepeats) return tooManyRepeats
    return foldedChars > POLICY_LIMITS.patternFoldedChars ? tooManyFolded : compilePattern(node, pattern)
  }

  function visitZone(node: Node): void {
    const zone = literalText(node)
    if (zone === undefined) refuse(node, 'the time zone must be a text literal')
    else if (!zoneOf(zone)) refuse(node, `unknown time zone ${zone}: write a name such as "Europe/Berlin" or "+02:00"`)
  }

  function visitKeys(keys: readonly Node[]): void {
    const seen = new Set<string>()
    for (const key of keys) {
      const text = literalText(key)
      if (text === undefined) refuse(key, 'a key must be a text literal')
      else if (seen.has(text)) refuse(key, `the key ${JSON.stringify(text)} occurs twice`)
      else seen.add(text)
    }
  }

  visit(root, { level: 1, loops: 0, variables: new Set() })
  return inOrder(faults)
}
