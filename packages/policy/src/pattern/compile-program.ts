import { RE2JS } from '@bufbuild/re2'
import { FIELDS, HEAD, type Program, RUNE } from './program.ts'

type Instruction = ReturnType<ReturnType<RE2JS['re2']>['prog']['getInst']>

/** @throws RE2JSSyntaxException if the source is not an RE2 pattern. */
export function compileProgram(source: string): Program {
  const compiled = RE2JS.compile(source).re2().prog
  const size = compiled.numInst()
  const numbers = [size, compiled.start]
  const ranges: number[] = []
  // RE2 repeats an instruction for each count in {…}, with the same list of characters.
  const places = new Map<readonly number[], number>()
  const placeOf = (runes: readonly number[]): number => {
    const place = places.get(runes) ?? HEAD + FIELDS * size + ranges.length
    if (!places.has(runes)) ranges.push(runes.length / 2, ...runes)
    places.set(runes, place)
    return place
  }
  for (let pc = 0; pc < size; pc++) {
    const instruction = compiled.getInst(pc)
    const { op, out, arg } = instruction
    numbers.push(op, out, arg, op < RUNE ? 0 : placeOf(rangesOf(instruction)))
  }
  return Int32Array.from(numbers.concat(ranges))
}

/** Sorted pairs of the first and the last character. */
function rangesOf({ runes, arg }: Instruction): readonly number[] {
  const [first = 0] = runes
  if (runes.length > 1) return runes
  // If the instruction of a single character has an argument, it ignores case.
  return arg === 0 ? [first, first] : anyCaseOf(first)
}

const anyCase = new Map<number, readonly number[]>()

/** All cases of a character, as ranges. The library knows the cases. */
function anyCaseOf(rune: number): readonly number[] {
  const known = anyCase.get(rune)
  if (known) return known
  // A second character keeps the class from being simplified. A line feed sorts before all characters that have cases.
  const { prog } = RE2JS.compile(`(?i)[\n${String.fromCodePoint(rune)}]`).re2()
  const ranges = prog.getInst(prog.start).runes.slice(2)
  anyCase.set(rune, ranges)
  return ranges
}
