/**
 * Every bound of the policy language, once, with its unit in the name.
 * What is past a bound of the source is a fault when the condition is compiled; what is past a bound of an evaluation
 * is a failure of that evaluation.
 */
export const POLICY_LIMITS = {
  /** UTF-16 units of a condition. */
  sourceChars: 4096,
  /** Operators, names, literals and calls in a condition. */
  nodes: 1000,
  /** Levels of a condition's syntax tree; each link of a chain such as `a || b || c` is one. */
  nestingLevels: 250,
  /** `all`, `exists`, `exists_one`, `map` and `filter` inside one another. */
  comprehensionLevels: 2,
  /** UTF-16 units of one pattern. */
  patternChars: 500,
  /** Sum of all counts in `{n}` and `{n,m}` of all patterns of a condition: RE2 unrolls them. */
  patternRepeats: 200,
  /** Instructions of one compiled pattern. */
  patternInstructions: 1000,
  /** Values in `tool.input`, itself included; also the texts in `risk.signals`. */
  inputValues: 10_000,
  /** Nesting of `tool.input`; a recorded payload may not be nested deeper either. */
  inputLevels: 200,
  /** Work of one evaluation; `Scope.spend` says what a step is. */
  evaluationSteps: 100_000,
  /** Compiled conditions that are kept, oldest dropped first. */
  cachedConditions: 1000,
} as const
