/** How this process shows things. On a terminal for a person; to a pipe or file whole and exact, for a program. */

export interface Look {
  /** Width of the terminal; null: no terminal, so nothing is cut, shortened or relative. */
  width: number | null
  /** Exact times on a terminal too. */
  isExact: boolean
  /** In milliseconds. */
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
