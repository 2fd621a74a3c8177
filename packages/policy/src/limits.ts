/**
 * All limits of the policy language, with the unit in the name.
 * A source over a limit is a compile fault. An evaluation over a limit fails.
 */
export const POLICY_LIMITS = {
  /** UTF-16 units of a condition. */
  sourceChars: 4096,
  /** Operators, names, literals and calls in a condition. */
  nodes: 1000,
  /** Levels of a condition's syntax tree. Each operator of a chain such as `a || b || c` adds one. */
  nestingLevels: 250,
  /** Nesting of `all`, `exists`, `exists_one`, `map` and `filter`. */
  comprehensionLevels: 2,
  /** UTF-16 units of one pattern. */
  patternChars: 500,
  /** Sum of all counts in `{n}` and `{n,m}` of all patterns of a condition: RE2 unrolls them. */
  patternRepeats: 200,
  /** Sum of the characters in all ranges of all patterns of a condition that ignore case: RE2 folds them one by one. */
  patternFoldedChars: 200_000,
  /** Instructions of one compiled pattern. */
  patternInstructions: 1000,
  /** Values in `tool.input`, including itself; also the texts in `risk.signals`. */
  inputValues: 10_000,
  /** Nesting of `tool.input`; recorded payloads have the same limit. */
  inputLevels: 200,
  /** Work of one evaluation; see `Scope.spend` for the size of a step. */
  evaluationSteps: 100_000,
  /** Characters of a policy's message; the rest is cut. */
  messageChars: 500,
  /** Cached compiled conditions; the oldest is dropped first. */
  cachedConditions: 1000,
} as const
