"""
All limits of the policy language. A source over a limit is a compile fault. An evaluation over a limit fails. A test compares
them with packages/policy/src/limits.ts.
"""

# UTF-16 units of a condition.
SOURCE_CHARS = 4096
# Operators, names, literals and calls in a condition.
NODES = 1000
# Levels of a condition's syntax tree; each operator of a chain such as `a || b || c` adds one.
NESTING_LEVELS = 250
# Nesting of `all`, `exists`, `exists_one`, `map` and `filter`.
COMPREHENSION_LEVELS = 2
# UTF-16 units of one pattern.
PATTERN_CHARS = 500
# Sum of all counts in `{n}` and `{n,m}` of all patterns of a condition: RE2 unrolls them.
PATTERN_REPEATS = 200
# Sum of the characters in all ranges of all patterns of a condition that ignore case.
PATTERN_FOLDED_CHARS = 200_000
# Instructions of one compiled pattern.
PATTERN_INSTRUCTIONS = 1000
# Values in `tool.input`, including itself; also the texts in `risk.signals`.
INPUT_VALUES = 10_000
# Nesting of `tool.input`; recorded payloads have the same limit.
INPUT_LEVELS = 200
# Work of one evaluation; see `Scope.spend` for the size of a step.
EVALUATION_STEPS = 100_000
# Characters of a policy's message; the rest is cut.
MESSAGE_CHARS = 500
# Cached compiled conditions; the oldest is dropped first.
CACHED_CONDITIONS = 1000
