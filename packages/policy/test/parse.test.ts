import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parse as parseWithOther } from '@bufbuild/cel'
import fc from 'fast-check'
import { parse } from '../src/language/parse.ts'
import type { Node } from '../src/language/syntax.ts'
import { SyntaxFault } from '../src/language/tokens.ts'
import { chains } from './generators.ts'

/** Fixed, so that every run tests the same expressions, and a difference appears only if one of the parsers changes. */
const SEED = 1

type Tree = string | readonly Tree[]

/** The grouping of operators, with brackets. */
function treeOf(node: Node): Tree {
  switch (node.kind) {
    case 'literal':
      return typeof node.value === 'string' ? JSON.stringify(node.value) : showNumber(node.value)
    case 'name':
      return node.name
    case 'field':
      return ['.', treeOf(node.object), node.key]
    case 'index':
      return ['_[_]', treeOf(node.object), treeOf(node.key)]
    case 'list':
      return ['list', ...node.elements.map(treeOf)]
    case 'map':
      return ['map', ...node.entries.map(({ key, value }) => [treeOf(key), treeOf(value)])]
    case 'choice':
      return ['_?_:_', treeOf(node.condition), treeOf(node.consequent), treeOf(node.alternate)]
    case 'unary':
      // The other parser drops double signs.
      if (node.operand.kind === 'unary') return treeOf(node.operand.operand)
      return [`${node.operator}_`, treeOf(node.operand)]
    case 'binary':
      return flat(node.operator === 'in' ? '@in' : `_${node.operator}_`, [treeOf(node.left), treeOf(node.right)])
    case 'call':
      return [node.name, ...node.values.map(treeOf)]
    case 'method':
      return [node.name, treeOf(node.receiver), ...node.values.map(treeOf)]
  }
}

/** The other parser balances chains of `&&` and `||`; their grouping does not matter. */
function flat(operator: string, operands: readonly Tree[]): Tree {
  if (operator !== '_&&_' && operator !== '_||_') return [operator, ...operands]
  return [operator, ...operands.flatMap((one) => (Array.isArray(one) && one[0] === operator ? one.slice(1) : [one]))]
}

function showNumber(value: null | boolean | bigint | number): string {
  return typeof value === 'number' ? `${value} as double` : String(value)
}

/** `a { }` makes a message in CEL. The profile has no messages. */
class MessageFound extends Error {}

type OtherNode = NonNullable<ReturnType<typeof parseWithOther>['expr']>

function otherTreeOf({ exprKind: { case: kind, value } }: OtherNode): Tree {
  switch (kind) {
    case 'constExpr': {
      const { case: type, value: constant } = value.constantKind
      if (type === 'stringValue') return JSON.stringify(constant)
      return showNumber(type === 'nullValue' ? null : (constant as boolean | bigint | number))
    }
    case 'identExpr':
      return value.name
    case 'selectExpr':
      return ['.', otherTreeOf(value.operand!), value.field]
    case 'listExpr':
      return ['list', ...value.elements.map(otherTreeOf)]
    case 'structExpr':
      if (value.messageName !== '') throw new MessageFound()
      return [
        'map',
        ...value.entries.map(({ keyKind, value: inner }) => [
          otherTreeOf(keyKind.value as OtherNode),
          otherTreeOf(inner!),
        ]),
      ]
    case 'callExpr':
      return flat(value.function, [value.target ?? [], value.args].flat().map(otherTreeOf))
    default:
      throw new Error(`no tree of ${kind}`)
  }
}

function treesOf(source: string): { ours?: Tree; fault?: string; others?: Tree; isMessage?: boolean } {
  const trees: ReturnType<typeof treesOf> = {}
  try {
    trees.ours = treeOf(parse(source))
  } catch (error) {
    assert.ok(error instanceof SyntaxFault, String(error))
    trees.fault = error.message
  }
  try {
    trees.others = otherTreeOf(parseWithOther(source).expr!)
  } catch (error) {
    // Otherwise, the other parser rejects it.
    trees.isMessage = error instanceof MessageFound
  }
  return trees
}

test('chains of operators group as in another CEL parser', () => {
  let compared = 0
  fc.assert(
    fc.property(chains, (source) => {
      const { ours, others } = treesOf(source)
      if (ours) compared++
      assert.deepEqual(ours, others, source)
    }),
    { numRuns: 1000, seed: SEED },
  )
  assert.ok(compared > 300, `only ${compared} were expressions`)
})

const TOKENS =
  'a b in true null 1 2.5 .5 1e3 0x1F "s" \'t\' r"\\d" """x""" ( ) [ ] { } , : . ? ! - + * / % && || == != < <= > >= a.b f( .g( //a\n'.split(
    ' ',
  )

test('expressions of another CEL parser parse to the same tree', () => {
  let compared = 0
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...TOKENS), { maxLength: 9 }), (tokens) => {
      const source = tokens.join(' ')
      const { ours, fault, others, isMessage } = treesOf(source)
      if (isMessage) assert.ok(fault !== undefined, source)
      // The other parser rejects `a.f( )`; ours rejects names with a leading dot.
      if (!others || fault?.endsWith(', found .')) return
      compared++
      assert.deepEqual(ours, others, source)
    }),
    { numRuns: 5000, seed: SEED },
  )
  assert.ok(compared > 150, `only ${compared} were expressions`)
})

test('messages of CEL are refused, because the profile has none', () => {
  for (const source of ['a { }', 'a.b { }', 'a { b: 1 }', 'true || a { }']) {
    const { fault, isMessage } = treesOf(source)
    assert.equal(isMessage, true, source)
    assert.match(fault ?? '', /expected an operator or the end, found \{/)
  }
})
