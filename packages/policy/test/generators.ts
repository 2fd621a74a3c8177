import fc from 'fast-check'

const texts = ['', 'a', 'b', 'refund', 'é', '😀', 'A b', 'x.y']
const keys = ['s', 'n', 'l', 'm', 'flag', 'constructor']
const quoted = (text: string) => JSON.stringify(text)

/** Boolean sources over the variables of the profile; most are valid. */
export const expressions: fc.Arbitrary<string> = fc.letrec<
  Record<'bool' | 'text' | 'int' | 'double' | 'list' | 'dyn', string>
>((tie) => {
  const [bool, text, int, double, list, dyn] = [
    tie('bool'),
    tie('text'),
    tie('int'),
    tie('double'),
    tie('list'),
    tie('dyn'),
  ]
  const join = (...parts: (fc.Arbitrary<string> | string)[]) =>
    fc.tuple(...parts.map((part) => (typeof part === 'object' ? part : fc.constant(part)))).map((all) => all.join(''))
  /** Adds parentheses to half of the conditions, because some operators cannot be combined without them. */
  const open = (...parts: (fc.Arbitrary<string> | string)[]) =>
    fc.tuple(join(...parts), fc.boolean()).map(([source, isClosed]) => (isClosed ? `(${source})` : source))
  const order = fc.constantFrom(' < ', ' <= ', ' > ', ' >= ', ' == ', ' != ')
  const same = fc.constantFrom(' == ', ' != ')
  const oneOf = (...options: fc.Arbitrary<string>[]) => fc.oneof({ maxDepth: 4, withCrossShrink: true }, ...options)
  const key = fc.constantFrom(...keys)
  const path = join('tool.input', oneOf(join('.', key), join('["', key, '"]')))
  return {
    bool: oneOf(
      fc.constantFrom('true', 'false', 'x == x', 'y != x', 'tool.name == "refund"', '"a" in risk.signals'),
      join(dyn, same, dyn),
      join(bool, same, bool),
      join(oneOf(bool, int), ' in [', oneOf(bool, int, text), ', ', oneOf(bool, dyn, double), ']'),
      join(text, order, text),
      join(int, order, int),
      join(double, order, double),
      join(dyn, order, oneOf(text, double, int)),
      open(bool, ' && ', bool),
      open(bool, ' || ', bool),
      join('!', open(bool)),
      open(bool, ' ? ', bool, ' : ', bool),
      join(oneOf(text, dyn), ' in ', oneOf(list, dyn)),
      join(
        '(',
        oneOf(text, dyn),
        ').',
        fc.constantFrom('startsWith', 'endsWith', 'contains'),
        '(',
        oneOf(text, dyn),
        ')',
      ),
      join(
        '(',
        oneOf(text, dyn),
        ').matches(',
        fc.constantFrom('"^a"', '"[a-f]+$"', '"(?i)REF"', '"^$"', '"\\\\bb"'),
        ')',
      ),
      join(
        '(',
        oneOf(list, dyn),
        ').',
        fc.constantFrom('all', 'exists', 'exists_one'),
        '(',
        fc.constantFrom('x', 'y'),
        ', ',
        bool,
        ')',
      ),
      join('has(tool.input.', key, ')'),
      join('"', key, '" in tool.input'),
      join('type(', oneOf(text, dyn, int, double), ') == ', fc.constantFrom('string', 'double', 'list', 'map', 'bool')),
      join('(now', fc.constantFrom(' < ', ' >= '), 'timestamp("2026-06-01T12:00:00Z"))'),
      join(
        'now.',
        fc.constantFrom('getHours', 'getDayOfWeek', 'getDayOfYear', 'getDate'),
        '(',
        fc.constantFrom('', '"Europe/Berlin"', '"-03:30"'),
        ')',
        order,
        int,
      ),
    ),
    text: oneOf(
      fc.constantFrom(...texts).map(quoted),
      fc.constantFrom('tool.name', 'agent.id', 'agent.name', 'run.id', 'session.id', 'x'),
      open(text, ' + ', oneOf(text, dyn)),
      join('(', text, ').', fc.constantFrom('lowerAscii()', 'upperAscii()', 'trim()')),
      join('string(', oneOf(int, bool), ')'),
    ),
    int: oneOf(
      fc.integer({ min: -3, max: 9 }).map(String),
      fc.constantFrom('run.totalTokens', 'run.toolCalls', '9223372036854775807'),
      join('size(', oneOf(text, list, dyn), ')'),
      open(int, fc.constantFrom(' + ', ' - ', ' * ', ' / ', ' % '), int),
      join('-', open(int)),
      join('int(', double, ')'),
    ),
    double: oneOf(
      fc.constantFrom('0.0', '1.5', '1e3', '0.0000000001', 'run.cost'),
      open(double, fc.constantFrom(' + ', ' - ', ' * ', ' / '), oneOf(double, dyn)),
      join('double(', int, ')'),
    ),
    list: oneOf(
      fc.constantFrom('risk.signals', '["a", "refund"]', '[1, 2]', '[]'),
      open(list, ' + ', list),
      join('[', text, ', ', text, ']'),
      join('(', oneOf(list, dyn), ').filter(', fc.constantFrom('x', 'y'), ', ', bool, ')'),
      join('(', oneOf(list, dyn), ').map(', fc.constantFrom('x', 'y'), ', ', oneOf(text, dyn, int), ')'),
      join('(', text, ').split(', fc.constantFrom('" "', '"."'), ')'),
    ),
    dyn: oneOf(
      path,
      join(path, '.', key),
      join(path, '[', fc.constantFrom('0', '1', '-1', '"s"'), ']'),
      fc.constantFrom('x', 'y'),
    ),
  }
}).bool

const OPERATORS = ['||', '&&', '==', '!=', '<', '<=', '>', '>=', 'in', '+', '-', '*', '/', '%', '?']

/** Operands and operators in any order, with few parentheses. Only precedence matters. */
export const chains: fc.Arbitrary<string> = fc.letrec<{ chain: string; operand: string }>((tie) => ({
  operand: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('a', '1', '2.5', '"s"', 'true', 'null', '[1]', 'a.b', 'a[0]', 'f(1)', 'a.g(1)', '.5', '{}'),
    fc.constantFrom('-1', '-.5', '!a', '-a', '!!a', '--a', '!-1', '- 1', '-a.b', '!a.g(1)', '-(a)', '-[a][0]'),
    tie('chain').map((chain) => `(${chain})`),
    tie('chain').map((chain) => `[${chain}]`),
    fc.tuple(tie('operand'), fc.constantFrom('.b', '[1]', '.g(a)')).map((parts) => parts.join('')),
  ),
  chain: fc
    .tuple(
      tie('operand'),
      fc.array(fc.tuple(fc.constantFrom(...OPERATORS), tie('operand'), tie('operand')), { maxLength: 5 }),
    )
    .map(([first, rest]) =>
      rest.reduce((source, [operator, operand, other]) => {
        return operator === '?' ? `${source} ? ${operand} : ${other}` : `${source} ${operator} ${operand}`
      }, first),
    ),
})).chain

/** A plain JSON input with keys that the expressions use. */
export function inputs(options: { nulls: boolean }): fc.Arbitrary<Record<string, unknown>> {
  const key = fc.oneof(fc.constantFrom(...keys), fc.constantFrom('__proto__', 'toString', 'é'))
  const { input } = fc.letrec<{ input: Record<string, unknown>; value: unknown; scalar: unknown }>((tie) => ({
    scalar: fc.oneof(
      fc.constantFrom(...texts),
      fc.constantFrom(0, 1, 1.5, -2, 1e9),
      fc.boolean(),
      ...(options.nulls ? [fc.constant(null)] : []),
    ),
    value: fc.oneof({ maxDepth: 3 }, tie('scalar'), fc.array(tie('value'), { maxLength: 4 }), tie('input')),
    input: fc.array(fc.tuple(key, tie('value')), { maxLength: 6 }).map((entries) => {
      // Object.fromEntries defines __proto__ as an own key, as JSON.parse does.
      return Object.fromEntries(entries) as Record<string, unknown>
    }),
  }))
  return input
}
