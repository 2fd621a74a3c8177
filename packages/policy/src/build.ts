import { shownIn, TIMESTAMP_FIELDS, type Zone, zoneOf } from './clock.ts'
import { FUNCTIONS, METHODS } from './functions.ts'
import { buildLoop } from './loops.ts'
import { negate, OPERATORS } from './operators.ts'
import { compilePattern, matches } from './pattern.ts'
import {
  type Call,
  dottedName,
  literalText,
  type Loop,
  loopOf,
  type MethodCall,
  type Names,
  type Node,
  sizeOf,
} from './syntax.ts'
import { Timestamp } from './time.ts'
import { Failure, isList, isMap, noOverload, Refusal, type Scope, type Step, TypeName, type Value } from './value.ts'
import { VARIABLE_NAMES } from './variables.ts'

/**
 * Turns a checked syntax tree into nested functions, once; running them looks nothing up but facts. `names` are the loop
 * variables in sight and their places in the scope.
 */
export function build(node: Node, names: Names = new Map()): Step {
  switch (node.op) {
    case 'value': {
      const value = node.args as Value
      return () => value
    }
    case 'id':
    case '.':
      return buildName(node, names) ?? buildField(node as Extract<Node, { op: '.' }>, names)
    case '[]':
      return buildIndex(node, build(node.args[0], names), build(node.args[1], names))
    case 'list':
      return buildList(
        node.args.map((element) => build(element, names)),
        node.args,
      )
    case 'map':
      return buildMap(node.args.map(([key, value]) => [literalText(key) ?? '', build(value, names)]))
    case '?:':
      return buildChoice(node, names)
    case '||':
      return buildLogic(node, true, names)
    case '&&':
      return buildLogic(node, false, names)
    case '!_':
      return buildUnary(node, names, (value) => (typeof value === 'boolean' ? !value : noOverload))
    case '-_':
      return buildUnary(node, names, negate)
    case 'call':
      if (node.args[0] === 'has') return buildHas(node, names)
      return buildCall(node, FUNCTIONS.get(`${node.args[0]}/${node.args[1].length}`), node.args[1], names)
    case 'rcall':
      return buildMethod(node, names)
    default:
      return buildOperator(node, names)
  }
}

function buildName(node: Node, names: Names): Step | undefined {
  if (node.op === 'id') {
    const place = names.get(node.args)
    if (place !== undefined) return (scope) => scope.locals[place] as Value
  }
  const name = dottedName(node)
  const slot = VARIABLE_NAMES.findIndex((variable) => variable === name)
  if (slot >= 0) return (scope) => scope.fact(slot)
  if (node.op === '.') return undefined
  const type = new TypeName(node.args as string)
  return () => type
}

function buildField(node: Extract<Node, { op: '.' }>, names: Names): Step {
  const [objectNode, key] = node.args
  const object = build(objectNode, names)
  const missing = failureAt(node, `there is no key ${JSON.stringify(key)}`)
  const notAMap = failureAt(node, `only a map has the key ${JSON.stringify(key)}`)
  return (scope) => {
    const map = object(scope)
    if (map instanceof Failure) return map
    if (!isMap(map)) return notAMap
    const value = map.get(key)
    return value === undefined ? missing : value
  }
}

function buildIndex(node: Node, container: Step, index: Step): Step {
  const missing = failureAt(node, 'there is no such key or index')
  const wrongType = failureAt(node, noOverload.reason)
  return (scope) => {
    const from = container(scope)
    if (from instanceof Failure) return from
    const at = index(scope)
    if (at instanceof Failure) return at
    let value: Value | undefined
    if (isList(from) && (typeof at === 'bigint' || typeof at === 'number')) value = from[Number(at)]
    else if (isMap(from) && typeof at === 'string') value = from.get(at)
    else return wrongType
    return value === undefined ? missing : value
  }
}

function buildList(elements: readonly Step[], nodes: readonly Node[]): Step {
  if (nodes.every(({ op }) => op === 'value')) {
    const constant = nodes.map(({ args }) => args as Value)
    return () => constant
  }
  return (scope) => {
    const values: Value[] = []
    for (const element of elements) {
      const value = element(scope)
      if (value instanceof Failure) return value
      values.push(value)
    }
    return values
  }
}

function buildMap(entries: readonly (readonly [string, Step])[]): Step {
  return (scope) => {
    const map = new Map<string, Value>()
    for (const [key, step] of entries) {
      const value = step(scope)
      if (value instanceof Failure) return value
      map.set(key, value)
    }
    return map
  }
}

function buildChoice(node: Extract<Node, { op: '?:' }>, names: Names): Step {
  const [condition, consequent, alternate] = [
    build(node.args[0], names),
    build(node.args[1], names),
    build(node.args[2], names),
  ]
  const notBool = failureAt(node.args[0], 'this is neither true nor false')
  return (scope) => {
    const chosen = condition(scope)
    if (chosen instanceof Failure) return chosen
    if (typeof chosen !== 'boolean') return notBool
    return chosen ? consequent(scope) : alternate(scope)
  }
}

/** `||` is decided by a true side and `&&` by a false one, whatever the other side is, an error included. */
function buildLogic(node: Extract<Node, { op: '||' | '&&' }>, decisive: boolean, names: Names): Step {
  const [leftNode, rightNode] = node.args
  const left = build(leftNode, names)
  const right = build(rightNode, names)
  const notBools = [leftNode, rightNode].map((side) => failureAt(side, 'this is neither true nor false'))
  return (scope) => {
    const first = left(scope)
    if (first === decisive) return decisive
    const second = right(scope)
    if (second === decisive) return decisive
    if (first instanceof Failure) return first
    if (typeof first !== 'boolean') return notBools[0] as Failure
    return typeof second === 'boolean' || second instanceof Failure ? second : (notBools[1] as Failure)
  }
}

function buildUnary(
  node: Extract<Node, { op: '!_' | '-_' }>,
  names: Names,
  apply: (value: Value) => Value | Refusal,
): Step {
  const operand = build(node.args, names)
  return (scope) => {
    const value = operand(scope)
    return value instanceof Failure ? value : located(apply(value), node)
  }
}

function buildOperator(node: Node, names: Names): Step {
  const [leftNode, rightNode] = node.args as [Node, Node]
  const left = build(leftNode, names)
  const right = build(rightNode, names)
  const apply = OPERATORS.get(node.op)
  if (!apply) throw new Error(`no operator ${node.op}`)
  return (scope) => {
    const first = left(scope)
    if (first instanceof Failure) return first
    const second = right(scope)
    return second instanceof Failure ? second : located(apply(first, second, scope), node)
  }
}

function buildHas({ args: [, [field]] }: Call, names: Names): Step {
  if (field?.op !== '.') throw new Error('has() without a field')
  if (buildName(field, names)) return () => true
  const object = build(field.args[0], names)
  const key = field.args[1]
  const notAMap = failureAt(field, `only a map has the key ${JSON.stringify(key)}`)
  return (scope) => {
    const map = object(scope)
    if (map instanceof Failure) return map
    return isMap(map) ? map.has(key) : notAMap
  }
}

function buildLoopAt(node: MethodCall, loop: Loop, names: Names): Step {
  const [, receiver, [variable, ...bodies]] = node.args
  const place = Math.max(-1, ...names.values()) + 1
  const inside = new Map(names).set(variable?.args as string, place)
  return buildLoop({
    loop,
    iterable: build(receiver, names),
    bodies: bodies.map((body) => build(body, inside)),
    place,
    weight: bodies.reduce((size, body) => size + sizeOf(body), 0),
    notIterable: failureAt(receiver, 'only a list or a map can be looped over'),
    notBool: failureAt(bodies[0] ?? node, 'this is neither true nor false'),
  })
}

type Implementation = (values: readonly Value[], scope: Scope) => Value | Refusal

function buildMethod(node: MethodCall, names: Names): Step {
  const [name, receiver, values] = node.args
  const loop = loopOf(node)
  if (loop) return buildLoopAt(node, loop, names)
  const text = literalText(values[0])
  if (name === 'matches' && text !== undefined) return buildCall(node, patternMethod(text), [receiver], names)
  if (TIMESTAMP_FIELDS.has(name) && text !== undefined)
    return buildCall(node, zoneMethod(name, text), [receiver], names)
  return buildCall(node, METHODS.get(`${name}/${values.length}`), [receiver, ...values], names)
}

function buildCall(node: Node, apply: Implementation | undefined, inputs: readonly Node[], names: Names): Step {
  if (!apply) throw new Error(`no function at ${node.start}`)
  const steps = inputs.map((input) => build(input, names))
  return (scope) => {
    const values: Value[] = []
    for (const step of steps) {
      const value = step(scope)
      if (value instanceof Failure) return value
      values.push(value)
    }
    return located(apply(values, scope), node)
  }
}

function patternMethod(source: string): Implementation {
  const pattern = compilePattern(source)
  if ('message' in pattern) throw new Error(pattern.message)
  return ([text], scope) => (typeof text === 'string' ? matches(pattern, text, scope) : noOverload)
}

function zoneMethod(name: string, zoneName: string): Implementation {
  const zone = zoneOf(zoneName) as Zone
  const field = TIMESTAMP_FIELDS.get(name) as (shown: Date) => number
  return ([time], scope) => {
    if (!(time instanceof Timestamp)) return noOverload
    scope.spend(100) // about 2 µs for a zone with summer time
    return BigInt(field(shownIn(zone, time)))
  }
}

function failureAt(node: Node, reason: string): Failure {
  return new Failure(reason, node.start)
}

function located(result: Value | Refusal, node: Node): Value | Failure {
  return result instanceof Refusal ? failureAt(node, result.reason) : result
}
