import { FUNCTION_SIGNATURES, METHOD_SIGNATURES, OPERATOR_SIGNATURES } from './signatures.ts'
import { dottedName, loopOf, type Node, type NodeOf } from './syntax.ts'
import {
  accepts,
  BOOL,
  CALL,
  comparable,
  DOUBLE,
  DYN,
  INT,
  isDynamic,
  isNumeric,
  join,
  JSON_VALUE,
  LIST,
  listOf,
  MAP,
  mapOf,
  NULL,
  showType,
  type Signature,
  STRING,
  TIMESTAMP,
  TYPE,
  type Type,
} from './types.ts'
import { VARIABLES } from './variables.ts'

const DECLARED = new Map<string, Type>(
  Object.entries(VARIABLES).map(([name, { type }]) => {
    const types = {
      string: STRING,
      int: INT,
      double: DOUBLE,
      'list<string>': listOf(STRING),
      'map<string, dyn>': mapOf(JSON_VALUE),
      'list<call>': listOf(CALL),
      dyn: JSON_VALUE,
      'google.protobuf.Timestamp': TIMESTAMP,
    }
    return [name, types[type]]
  }),
)

type Locals = ReadonlyMap<string, Type>
type Refuse = (node: Node, message: string) => void

/**
 * The type of an expression that follows the rules (rules.ts). Rejects every operation that always fails. The result of
 * such an operation counts as dyn, so that one mistake is reported once.
 */
export function checkTypes(root: Node, refuse: Refuse): Type {
  function visit(node: Node, locals: Locals): Type {
    switch (node.kind) {
      case 'literal':
        return typeOfLiteral(node)
      case 'name':
        return locals.get(node.name) ?? DECLARED.get(node.name) ?? TYPE
      case 'field':
        return DECLARED.get(dottedName(node) ?? '') ?? visitField(node, locals)
      case 'index':
        return visitIndex(node, locals)
      case 'list':
        return node.elements.length === 0 ? LIST : listOf(joinAll(node.elements, locals))
      case 'map':
        return node.entries.length === 0
          ? MAP
          : mapOf(
              joinAll(
                node.entries.map(({ value }) => value),
                locals,
              ),
            )
      case 'choice':
        return visitChoice(node, locals)
      case 'unary':
        return visitUnary(node, locals)
      case 'binary':
        return visitBinary(node, locals)
      case 'call':
        return visitCall(node, locals)
      case 'method':
        return visitMethod(node, locals)
    }
  }

  function noSuch(node: Node, operation: string, hint = ''): Type {
    refuse(node, `no such operation: ${operation}${hint}`)
    return DYN
  }

  function joinAll(nodes: readonly Node[], locals: Locals): Type {
    return nodes.map((node) => visit(node, locals)).reduce(join)
  }

  function visitField(node: NodeOf<'field'>, locals: Locals): Type {
    const object = visit(node.object, locals)
    if (isDynamic(object)) return object
    if (object.name === 'map') {
      const { keys } = object
      if (!keys || keys.includes(node.key)) return object.of
      refuse(node, `a call of run.calls has no ${node.key}; use one of ${keys.join(', ')}`)
      return DYN
    }
    refuse(node, `only a map can have the key ${JSON.stringify(node.key)}, but this is ${showType(object)}`)
    return DYN
  }

  function visitIndex(node: NodeOf<'index'>, locals: Locals): Type {
    const object = visit(node.object, locals)
    const key = visit(node.key, locals)
    if (object.name === 'dyn') return DYN
    if (object.name === 'list' && (isDynamic(key) || key.name === 'int')) return object.of
    if (object.name === 'map' && accepts(STRING, key)) return object.of
    if (object.name === 'json' && (isDynamic(key) || isNumeric(key) || key.name === 'string')) return JSON_VALUE
    return noSuch(node, `${showType(object)}[${showType(key)}]`)
  }

  function visitChoice(node: NodeOf<'choice'>, locals: Locals): Type {
    const condition = visit(node.condition, locals)
    const [consequent, alternate] = [visit(node.consequent, locals), visit(node.alternate, locals)]
    if (accepts(BOOL, condition) && comparable(consequent, alternate)) return join(consequent, alternate)
    return noSuch(node, `${showType(condition)} ? ${showType(consequent)} : ${showType(alternate)}`)
  }

  function visitUnary(node: NodeOf<'unary'>, locals: Locals): Type {
    const operand = visit(node.operand, locals)
    const result = resultOf(OPERATOR_SIGNATURES.get(`${node.operator}/1`), [operand])
    return result ?? noSuch(node, `${node.operator}${showType(operand)}`)
  }

  function visitBinary(node: NodeOf<'binary'>, locals: Locals): Type {
    const [left, right] = [visit(node.left, locals), visit(node.right, locals)]
    const result = binaryResult(node.operator, left, right)
    if (result) return result
    const { at = node, hint = '' } = binaryHint(node, left, right) ?? {}
    return noSuch(at, `${showType(left)} ${node.operator} ${showType(right)}`, hint)
  }

  function visitCall(node: NodeOf<'call'>, locals: Locals): Type {
    if (node.name === 'has') {
      const [field] = node.values
      if (field?.kind === 'field') visit(field, locals)
      return BOOL
    }
    const argumentTypes = node.values.map((value) => visit(value, locals))
    const signatures = FUNCTION_SIGNATURES.get(`${node.name}/${argumentTypes.length}`)
    const result = resultOf(signatures, argumentTypes)
    if (result) return result
    return noSuch(node, `${node.name}(${showTypes(argumentTypes)})`, `; ${node.name} takes ${showOptions(signatures)}`)
  }

  function visitMethod(node: NodeOf<'method'>, locals: Locals): Type {
    const receiver = visit(node.receiver, locals)
    if (loopOf(node)) return visitLoop(node, receiver, locals)
    const argumentTypes = node.values.map((value) => visit(value, locals))
    const signatures = METHOD_SIGNATURES.get(`${node.name}/${argumentTypes.length}`) ?? []
    const result = resultOf(signatures, [receiver, ...argumentTypes])
    if (result) return result
    const asked = signatures.map(([[object]]) => object as Type)
    if (receiver.name === 'json' && !asked.some((type) => accepts(type, receiver))) {
      return noSuch(node.receiver, `dyn.${node.name}()`, timeHint('timestamp'))
    }
    const options = signatures.map(([[object, ...values]]) => `${showType(object!)}.${node.name}(${showTypes(values)})`)
    return noSuch(
      node,
      `${showType(receiver)}.${node.name}(${showTypes(argumentTypes)})`,
      `; use ${options.join(' or ')}`,
    )
  }

  function visitLoop(node: NodeOf<'method'>, receiver: Type, locals: Locals): Type {
    const [variable, ...bodies] = node.values
    if (!accepts(LIST, receiver) && !accepts(MAP, receiver)) {
      refuse(node.receiver, `a loop needs a list or a map, but this is ${showType(receiver)}`)
      return DYN
    }
    // A loop over a map visits its keys. A value of tool.input can be a map or a list.
    const item = receiver.name === 'list' ? receiver.of : receiver.name === 'map' ? STRING : receiver
    const inside = new Map(locals).set((variable as NodeOf<'name'>).name, item)
    const types = bodies.map((body) => visit(body, inside))
    const transforms = node.name === 'map' ? types.pop() : undefined
    for (const [index, type] of types.entries()) {
      if (!accepts(BOOL, type)) refuse(bodies[index] as Node, `this must be true or false, but is ${showType(type)}`)
    }
    if (transforms) return listOf(transforms)
    return node.name === 'filter' ? listOf(item) : BOOL
  }

  return visit(root, new Map())
}

function typeOfLiteral({ value }: NodeOf<'literal'>): Type {
  switch (typeof value) {
    case 'string':
      return STRING
    case 'bigint':
      return INT
    case 'number':
      return DOUBLE
    case 'boolean':
      return BOOL
    default:
      return NULL
  }
}

/** The result type for these operand types: dyn if several are possible, undefined if there is none. */
function resultOf(signatures: readonly Signature[] = [], argumentTypes: readonly Type[]): Type | undefined {
  const results = signatures
    .filter(([asked]) => asked.every((type, index) => accepts(type, argumentTypes[index] as Type)))
    .map(([, result]) => result)
  if (results.every((result) => result === results[0])) return results[0]
  return argumentTypes.every(({ name }) => name === 'json') ? JSON_VALUE : DYN
}

function binaryResult(operator: string, left: Type, right: Type): Type | undefined {
  if (operator === '==' || operator === '!=') return comparable(left, right) ? BOOL : undefined
  if (operator === 'in') return isContainer(right, left) ? BOOL : undefined
  const result = resultOf(OPERATOR_SIGNATURES.get(`${operator}/2`), [left, right])
  if (left.name !== 'list' || right.name !== 'list') return result
  return result && comparable(left, right) ? join(left, right) : undefined
}

function isContainer(container: Type, element: Type): boolean {
  if (container.name === 'list') return comparable(container.of, element)
  return isDynamic(container) || (container.name === 'map' && accepts(STRING, element))
}

/** Hints for common mistakes: comparing ints with the doubles of tool.input, and times with its texts. */
function binaryHint(node: NodeOf<'binary'>, left: Type, right: Type): { at: Node; hint: string } | undefined {
  const sides = [
    { at: node.left, type: left, other: right },
    { at: node.right, type: right, other: left },
  ]
  const text = sides.find(({ type, other }) => type.name === 'json' && ['timestamp', 'duration'].includes(other.name))
  if (text) return { at: text.at, hint: timeHint(text.other.name) }
  const doubles = [left, right].some(({ name }) => name === 'json') ? '; numbers in tool.input are doubles and ' : '; '
  if (node.operator === '%') {
    const double = sides.find(({ type }) => ['json', 'double'].includes(type.name))
    return double && { at: double.at, hint: `${doubles}% takes ints: write int(…) around this` }
  }
  const int = sides.find(({ type, other }) => type.name === 'int' && ['json', 'double'].includes(other.name))
  if (!int) return undefined
  const { at } = int
  const write =
    at.kind === 'literal' ? `write ${String(at.value)}.0 for ${String(at.value)}` : 'write double(…) around it'
  return { at, hint: `${doubles}this is an int: ${write}` }
}

function timeHint(name: string): string {
  return `; times in tool.input are texts: write ${name}(…) around this`
}

function showTypes(types: readonly Type[]): string {
  return types.map(showType).join(', ')
}

function showOptions(signatures: readonly Signature[] = []): string {
  return signatures.map(([types]) => showTypes(types)).join(' or ')
}
