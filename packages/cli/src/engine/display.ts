/**
 * How this process shows values: short for a person on a terminal, complete and exact for a program; and colours by
 * meaning.
 */
import { styleText } from 'node:util'

/**
 * How this process shows values: short on a terminal, for a person; complete and exact in a pipe or file, for a
 * program.
 */

export interface Look {
  /** Width of the terminal. Null: output is not a terminal, so nothing is cut, shortened or relative. */
  width: number | null
  /** Exact times, even on a terminal. */
  isExact: boolean
  /** The current time in milliseconds. */
  now: number
}

const DEFAULT_WIDTH = 80
const settings = { isExact: false }

/** The flag --utc. */
export function showExactTimes(): void {
  settings.isExact = true
}

export function currentLook(): Look {
  const { isTTY, columns } = process.stdout
  return { width: isTTY ? columns || DEFAULT_WIDTH : null, isExact: settings.isExact, now: Date.now() }
}

/** Colours by meaning. Each also has a word, for people who see no colours. */

export type Tone = 'red' | 'amber' | 'green' | 'blue' | 'faint' | 'strong'

const STYLES = { red: 'red', amber: 'yellow', green: 'green', blue: 'cyan', faint: 'dim', strong: 'bold' } as const

/** The tone of each status word, as in the console. */
const WORDS = new Map<string, Tone>([
  ...inTone('red', 'FAILED', 'REJECTED', 'BLOCK', 'OPEN', 'CRITICAL', 'DEAD'),
  ...inTone('amber', 'STALLED', 'PENDING', 'REQUIRE_APPROVAL', 'WARN', 'HIGH', 'SEARCHING', 'RETRYING'),
  ...inTone('green', 'COMPLETED', 'APPROVED', 'RESOLVED', 'ALLOW', 'DELIVERED', 'DONE', 'DECIDED'),
  ...inTone('blue', 'RUNNING'),
  ...inTone('faint', 'CANCELLED', 'EXPIRED', 'WITHDRAWN', 'IGNORED', 'revoked', 'expired'),
])

function inTone(tone: Tone, ...words: string[]): [string, Tone][] {
  return words.map((word) => [word, tone])
}

/** Colours a text, unless stdout is no terminal or NO_COLOR is set. */
export function toned(tone: Tone | null, text: string): string {
  return tone === null ? text : styleText(STYLES[tone], text, { stream: process.stdout })
}

/** The tone of a status, by its first word: `RUNNING (pinned)`. */
export function toneOf(status: string): Tone | null {
  return WORDS.get(/^\w+/.exec(status)?.[0] ?? '') ?? null
}

/** A status in its colour. */
export function tonedWord(status: string): string {
  return toned(toneOf(status), status)
}
