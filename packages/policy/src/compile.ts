import { build } from './build.ts'
import { type Fields, fieldsIn } from './fields.ts'
import { POLICY_LIMITS } from './limits.ts'
import { type Fault, type Position, positionAt } from './position.ts'
import { engine } from './profile.ts'
import { checkRules } from './rules.ts'
import { childrenOf, type Node } from './syntax.ts'
import type { Step } from './value.ts'

export type { Fault, Fields, Position }

/** A condition that was checked and is ready to run. It holds no state: any number of evaluations may share it. */
export type Condition = {
  readonly source: string
  readonly fields: Fields
  readonly run: Step
}

export type Compiled =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly faults: readonly Fault[] }

/**
 * Parses a condition and checks it against the profile: names, types, patterns, bounds, and that it is true or false.
 * Never throws. Faults point into the source as it was written; usually there is one, and never none.
 */
export function compileCondition(source: string): Compiled {
  try {
    return compile(source)
  } catch (error) {
    // Nothing but the depth of the stack can end here: `!!!!…` is parsed by recursion.
    const message =
      error instanceof RangeError ? 'the condition is nested too deeply' : 'the condition cannot be compiled'
    return { ok: false, faults: [{ message, position: positionAt(String(source), 0) }] }
  }
}

/** What a condition reads, to tell which of it was never recorded. */
export function fieldsOf(condition: Condition): Fields {
  return condition.fields
}

function compile(source: string): Compiled {
  const refuse = (message: string, start = 0, end?: number): Compiled => ({
    ok: false,
    faults: [{ message, position: positionAt(source, start, end) }],
  })
  if (typeof source !== 'string')
    return { ok: false, faults: [{ message: 'the condition must be a text', position: positionAt('', 0) }] }
  const most = POLICY_LIMITS.sourceChars
  if (source.length > most) return refuse(`the condition may have at most ${most} characters`, most, source.length)
  if (!source.isWellFormed()) return refuse('the condition is not well-formed Unicode')

  let parsed
  try {
    parsed = engine.parse(source)
  } catch (error) {
    if (!isEngineError(error)) throw error
    return refuse(parseMessage(error), error.range?.start, error.range?.end)
  }
  const faults = checkRules(parsed.ast, source)
  if (faults.length > 0) return { ok: false, faults }

  const { valid, type, error } = parsed.check()
  if (!valid) {
    if (!isEngineError(error)) throw error
    return refuse(error.summary, error.range?.start, error.range?.end)
  }
  const mixed = findMixedArithmetic(parsed.ast)
  if (mixed) return refuse(intAmongDoubles, mixed.start, mixed.end)
  if (type !== 'bool') {
    const hint = type === 'dyn' ? 'compare it with something, for example == true' : `this gives ${type}`
    return refuse(`a condition must be true or false; ${hint}`, 0, source.length)
  }
  const condition = { source, fields: fieldsIn(parsed.ast), run: build(parsed.ast) }
  return { ok: true, condition: Object.freeze(condition) }
}

type EngineError = Error & { code: string; summary: string; range?: { start: number; end: number } }

function isEngineError(error: unknown): error is EngineError {
  return error instanceof Error && 'summary' in error
}

// The parser's names of tokens, as they are written.
const TOKENS: Record<string, string> = {
  EOF: 'the end',
  LPAREN: '(',
  RPAREN: ')',
  LBRACKET: '[',
  RBRACKET: ']',
  LBRACE: '{',
  RBRACE: '}',
  DOT: '.',
  COMMA: ',',
  COLON: ':',
  QUESTION: '?',
  IDENTIFIER: 'a name',
}

function parseMessage({ code, summary }: EngineError): string {
  if (code !== 'limit_exceeded')
    return summary.replace(/\b[A-Z]{3,}\b/g, (token) => TOKENS[token] ?? token.toLowerCase())
  return summary.includes('maxAstNodes')
    ? `the condition has more than ${POLICY_LIMITS.nodes} names, literals, operators and calls`
    : `the condition is nested too deeply, or one of its lists is too long`
}

const intAmongDoubles = 'numbers in tool.input are doubles and this is an int: write 1.0 for 1, or double(…) around it'

const ARITHMETIC = new Set(['+', '-', '*', '/', '%'])

/**
 * `tool.input.amount + 1` passes CEL's check, since the type of a field is not known, and can never be evaluated: all
 * numbers there are doubles. It is the first mistake that people make, so it is refused here and not in production.
 */
function findMixedArithmetic(node: Node): Node | undefined {
  if (ARITHMETIC.has(node.op)) {
    const types = childrenOf(node).map(checkedType)
    if (types.includes('int') && types.includes('dyn'))
      return childrenOf(node).find((side) => checkedType(side) === 'int')
  }
  for (const child of childrenOf(node)) {
    const found = findMixedArithmetic(child)
    if (found) return found
  }
  return undefined
}

/** The engine notes the type of each node on it, though its declarations do not tell. */
function checkedType(node: Node): string | undefined {
  return (node as { checkedType?: { name: string } }).checkedType?.name
}
