import { POLICY_LIMITS } from '../limits.ts'
import type { Literal, Node } from './syntax.ts'
import { readToken, SyntaxFault, type Token } from './tokens.ts'

// Names that CEL reserves. They are allowed after a dot.
const RESERVED = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(' '),
)

// From lowest to highest precedence. Operators of a row are left-associative; all relations share one row.
const BINARY = [['||'], ['&&'], ['==', '!=', '<', '<=', '>', '>=', 'in'], ['+', '-'], ['*', '/', '%']] as const

// Operators of other languages.
const WORDS = new Map([
  ['and', 'write && for and'],
  ['or', 'write || for or'],
  ['not', 'write ! for not'],
  ['is', 'write == to compare'],
])

const INT_MAX = 2n ** 63n - 1n
const INT_MIN = -(2n ** 63n)

// A separate union, because Omit would lose the kinds.
type Unplaced = Node extends infer One ? (One extends Node ? Omit<One, 'start' | 'end'> : never) : never

/**
 * Parses CEL's grammar (https://github.com/cel-expr/cel-spec/blob/master/doc/langdef.md#syntax), except messages, bytes,
 * unsigned ints and names that start with a dot. Macros stay calls.
 * @throws SyntaxFault at the first position that is not CEL, or exceeds the limit for nesting or nodes.
 */
export function parse(source: string): Node {
  let token = readToken(source, 0)
  /** End of the previous token. */
  let end = 0
  let nodes = 0
  let level = 0

  function advance(): void {
    end = token.end
    token = readToken(source, end)
  }

  function isNext(symbol: string): boolean {
    return token.kind === 'symbol' && token.text === symbol
  }

  function takeIf(symbol: string): boolean {
    if (!isNext(symbol)) return false
    advance()
    return true
  }

  function expect(symbol: string): void {
    if (!takeIf(symbol)) refuse(`expected ${symbol}`)
  }

  function refuse(expected: string): never {
    const text = source.slice(token.start, token.end)
    const tokenText = token.kind === 'end' ? 'the end' : text.length > 40 ? `${text.slice(0, 40)}…` : text
    const hint = token.kind === 'name' ? WORDS.get(token.text.toLowerCase()) : undefined
    throw new SyntaxFault(`${expected}, found ${tokenText}${hint ? `; ${hint}` : ''}`, token.start, token.end)
  }

  function place(start: number, node: Unplaced): Node {
    if (++nodes > POLICY_LIMITS.nodes) {
      const most = `the condition has more than ${POLICY_LIMITS.nodes} names, literals, operators and calls`
      throw new SyntaxFault(most, start, end)
    }
    return { ...node, start, end } as Node
  }

  function expression(): Node {
    const { start } = token
    if (++level > POLICY_LIMITS.nestingLevels) throw new SyntaxFault(TOO_DEEP, start, token.end)
    let node = binary(0)
    if (takeIf('?')) {
      const consequent = binary(0)
      expect(':')
      const alternate = expression()
      node = place(start, { kind: 'choice', condition: node, consequent, alternate })
    }
    level--
    return node
  }

  function binary(row: number): Node {
    const operators = BINARY[row]
    if (!operators) return unary()
    const { start } = token
    let left = binary(row + 1)
    for (;;) {
      const operator = operators.find(isNext)
      if (operator === undefined) return left
      advance()
      const right = binary(row + 1)
      left = place(start, { kind: 'binary', operator, left, right })
    }
  }

  /** Repeats of one sign only: `!-x` and `-!x` are not CEL. */
  function unary(): Node {
    const operator = isNext('!') ? '!' : '-'
    const signs: number[] = []
    while (isNext(operator) && !isNegativeNumber()) {
      signs.push(token.start)
      advance()
    }
    let node = member(token.start, primary())
    for (const start of signs.reverse()) node = place(start, { kind: 'unary', operator, operand: node })
    return node
  }

  /** A sign before a number belongs to it: -9223372036854775808 is valid, 9223372036854775808 is not. */
  function isNegativeNumber(): boolean {
    return isNext('-') && /^-\.?\d/.test(source.slice(token.start, token.start + 3))
  }

  function number(start: number, sign: 1n | -1n): Node {
    if (token.kind !== 'int') return literal(start, Number(sign) * (token as NumberToken).value)
    const value = sign * token.value
    if (value > INT_MAX || value < INT_MIN) {
      throw new SyntaxFault('the number does not fit into 64 bits', start, token.end)
    }
    return literal(start, value)
  }

  function literal(start: number, value: Literal): Node {
    advance()
    return place(start, { kind: 'literal', value })
  }

  function member(start: number, first: Node): Node {
    let node = first
    for (;;) {
      if (takeIf('.')) node = afterDot(start, node)
      else if (takeIf('[')) {
        const key = expression()
        expect(']')
        node = place(start, { kind: 'index', object: node, key })
      } else return node
    }
  }

  function afterDot(start: number, object: Node): Node {
    if (token.kind !== 'name' && token.kind !== 'quoted name') return refuse('expected a name')
    const { kind, text } = token
    advance()
    if (kind === 'quoted name' || !takeIf('(')) return place(start, { kind: 'field', object, key: text })
    const values = list(')')
    return place(start, { kind: 'method', name: text, receiver: object, values })
  }

  function primary(): Node {
    const { start } = token
    if (isNegativeNumber()) {
      advance()
      return number(start, -1n)
    }
    if (isNumber(token)) return number(start, 1n)
    if (token.kind === 'literal') return literal(start, token.value)
    if (token.kind === 'name' && !RESERVED.has(token.text)) return named(start, token.text)
    if (takeIf('(')) {
      const node = expression()
      expect(')')
      return node
    }
    if (takeIf('[')) {
      const elements = list(']')
      return place(start, { kind: 'list', elements })
    }
    if (takeIf('{')) {
      const pairs = entries()
      return place(start, { kind: 'map', entries: pairs })
    }
    return refuse('expected a value')
  }

  function named(start: number, name: string): Node {
    advance()
    if (!takeIf('(')) return place(start, { kind: 'name', name })
    const values = list(')')
    return place(start, { kind: 'call', name, values })
  }

  /** Expressions up to a closing bracket. A list can end with a comma. */
  function list(close: ')' | ']'): Node[] {
    const values: Node[] = []
    while (!isNext(close)) {
      values.push(expression())
      if (!isNext(',')) break
      advance()
      if (close === ')' && isNext(')')) refuse('expected a value')
    }
    expect(close)
    return values
  }

  function entries(): { key: Node; value: Node }[] {
    const pairs: { key: Node; value: Node }[] = []
    while (!isNext('}')) {
      const key = expression()
      expect(':')
      pairs.push({ key, value: expression() })
      if (!takeIf(',')) break
    }
    expect('}')
    return pairs
  }

  const root = expression()
  if (token.kind !== 'end') refuse('expected an operator or the end')
  return root
}

export const TOO_DEEP = `the condition is nested more than ${POLICY_LIMITS.nestingLevels} levels deep`

type NumberToken = Token & { readonly value: number }

function isNumber(token: Token): boolean {
  return token.kind === 'int' || (token.kind === 'literal' && typeof token.value === 'number')
}
