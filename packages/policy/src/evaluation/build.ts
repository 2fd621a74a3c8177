import { shownIn, TIMESTAMP_FIELDS, type Zone, zoneOf } from './clock.ts'
import { FUNCTIONS, type Implementation, METHODS } from './functions.ts'
import { NO_HISTORY } from '../input/facts.ts'
import { buildLoop } from './loops.ts'
import { negate, not, OPERATORS } from './operators.ts'
import { matches, patternOf } from '../pattern/pattern.ts'
import {
  dottedName,
  isOfSettled,
  literalText,
  type Loop,
  loopOf,
  type Node,
  type NodeOf,
  onlyToolOf,
  sizeOf,
  soughtInputOf,
} from '../language/syntax.ts'
import { Timestamp } from './time.ts'
import {
  Failure,
  isList,
  isMap,
  noOverload,
  type Preparation,
  Refusal,
  type Step,
  TypeName,
  Unreadable,
  type Value,
} from './value.ts'
import { VARIABLE_NAMES } from '../language/variables.ts'

interface Names {
  /** Visible loop variables and their slots in the scope. */
  readonly places: ReadonlyMap<string, number>
  readonly preparations: Preparation[]
}

/** Builds nested functions from a checked syntax tree, once. Running them looks up only facts. */
export function build(node: Node, names: Names = { places: new Map(), preparations: [] }): Step {
  switch (node.kind) {
    case 'literal': {
      const { value } = node
      return () => value
    }
    case 'name':
      return buildName(node, names) ?? buildTypeName(node)
    case 'field':
      return buildName(node, names) ?? buildField(node, names)
    case 'index':
      return buildIndex(node, names)
    case 'list':
      return buildList(node, names)
    case 'map':
      return buildMap(node.entries.map(({ key, value }) => [literalText(key) ?? '', build(value, names)]))
    case 'choice':
      return buildChoice(node, names)
    case 'unary':
      return buildUnary(node, names)
    case 'binary':
      if (node.operator === '||' || node.operator === '&&') return buildLogic(node, names)
      return buildOperator(node, names)
    case 'call':
      if (node.name === 'has') return buildHas(node, names)
      return buildCall(node, FUNCTIONS.get(`${node.name}/${node.values.length}`), node.values, names)
    case 'method':
      return buildMethod(node, names)
  }
}

function buildName(node: Node, names: Names): Step | undefined {
  const place = node.kind === 'name' ? names.places.get(node.name) : undefined
  if (place !== undefined) return (scope) => scope.locals[place] as Value
  const name = dottedName(node)
  const slot = VARIABLE_NAMES.findIndex((variable) => variable === name)
  return slot < 0 ? undefined : (scope) => scope.fact(slot)
}

function buildTypeName({ name }: NodeOf<'name'>): Step {
  const type = new TypeName(name)
  return () => type
}

function buildField(node: NodeOf<'field'>, names: Names): Step {
  const object = build(node.object, names)
  const { key } = node
  const missing = failureAt(node, `missing key ${JSON.stringify(key)}`)
  const notAMap = failureAt(node, `only a map can have the key ${JSON.stringify(key)}`)
  return (scope) => {
    const map = object(scope)
    if (map instanceof Failure) return map
    if (!isMap(map)) return notAMap
    const value = map.get(key)
    return value === undefined ? missing : value
  }
}

function buildIndex(node: NodeOf<'index'>, names: Names): Step {
  const container = build(node.object, names)
  const index = build(node.key, names)
  const missing = failureAt(node, 'no such key or index')
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

function buildList(node: NodeOf<'list'>, names: Names): Step {
  const constant: Value[] = node.elements.flatMap((element) => (element.kind === 'literal' ? [element.value] : []))
  if (constant.length === node.elements.length) return () => constant
  const elements = node.elements.map((element) => build(element, names))
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

function buildChoice(node: NodeOf<'choice'>, names: Names): Step {
  const condition = build(node.condition, names)
  const consequent = build(node.consequent, names)
  const alternate = build(node.alternate, names)
  const notBool = failureAt(node.condition, 'this must be true or false')
  return (scope) => {
    const chosen = condition(scope)
    if (chosen instanceof Failure) return chosen
    if (typeof chosen !== 'boolean') return notBool
    return chosen ? consequent(scope) : alternate(scope)
  }
}

/** A true side decides `||` and a false side decides `&&`, even if the other side is an error. */
function buildLogic(node: NodeOf<'binary'>, names: Names): Step {
  const decisive = node.operator === '||'
  const left = build(node.left, names)
  const right = build(node.right, names)
  const notBools = [node.left, node.right].map((side) => failureAt(side, 'this must be true or false'))
  return (scope) => {
    const first = left(scope)
    if (first === decisive) return decisive
    const second = right(scope)
    if (second === decisive) return decisive
    if (typeof first !== 'boolean' && !(second instanceof Unreadable))
      return first instanceof Failure ? first : (notBools[0] as Failure)
    return typeof second === 'boolean' || second instanceof Failure ? second : (notBools[1] as Failure)
  }
}

function buildUnary(node: NodeOf<'unary'>, names: Names): Step {
  const operand = build(node.operand, names)
  const apply = node.operator === '!' ? not : negate
  return (scope) => {
    const value = operand(scope)
    return value instanceof Failure ? value : located(apply(value), node)
  }
}

function buildOperator(node: NodeOf<'binary'>, names: Names): Step {
  const left = build(node.left, names)
  const right = build(node.right, names)
  const apply = OPERATORS.get(node.operator)
  if (!apply) throw new Error(`no operator ${node.operator}`)
  return (scope) => {
    const first = left(scope)
    if (first instanceof Failure) return first
    const second = right(scope)
    return second instanceof Failure ? second : located(apply(first, second, scope), node)
  }
}

function buildHas({ values: [field] }: NodeOf<'call'>, names: Names): Step {
  if (field?.kind !== 'field') throw new Error('has() without a field')
  if (buildName(field, names)) return () => true
  const object = build(field.object, names)
  const { key } = field
  const notAMap = failureAt(field, `only a map can have the key ${JSON.stringify(key)}`)
  return (scope) => {
    const map = object(scope)
    if (map instanceof Failure) return map
    return isMap(map) ? map.has(key) : notAMap
  }
}

function buildLoopAt(node: NodeOf<'method'>, loop: Loop, names: Names): Step {
  const { receiver } = node
  const [variable, ...bodies] = node.values
  const place = Math.max(-1, ...names.places.values()) + 1
  const sought = place === 0 ? soughtInputOf(node) : undefined
  const places = new Map(names.places).set((variable as NodeOf<'name'>).name, place)
  return buildLoop({
    loop,
    iterable: buildIterable(node, names),
    bodies: bodies.map((body) => build(body, { ...names, places })),
    place,
    weight: bodies.reduce((size, body) => size + sizeOf(body), 0),
    notIterable: failureAt(receiver, 'a loop needs a list or a map'),
    notBool: failureAt(bodies[0] ?? node, 'this must be true or false'),
    isOfSettled: isOfSettled(node),
    sought: sought && { path: sought.path, value: build(sought.value) },
    preparations: names.preparations,
  })
}

function buildIterable(node: NodeOf<'method'>, names: Names): Step {
  const tool = onlyToolOf(node)
  return tool === undefined ? build(node.receiver, names) : (scope) => scope.history?.callsOf(tool) ?? NO_HISTORY
}

function buildMethod(node: NodeOf<'method'>, names: Names): Step {
  const { name, receiver, values } = node
  const loop = loopOf(node)
  if (loop) return buildLoopAt(node, loop, names)
  const [first] = values
  const text = literalText(first)
  if (name === 'matches' && first) return buildCall(node, patternMethod(first), [receiver], names)
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

function patternMethod(literal: Node): Implementation {
  const pattern = patternOf(literal)
  if (!pattern) throw new Error(`the pattern at ${literal.start} is not compiled`)
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
