/** The only way to end a command early: one sentence on stderr and an exit code. */
export class Stop extends Error {
  readonly exitCode: 1 | 2

  constructor(exitCode: 1 | 2, sentence: string) {
    super(sentence)
    this.name = 'Stop'
    this.exitCode = exitCode
  }
}

/** The command was valid but failed. */
export function failed(sentence: string): Stop {
  return new Stop(1, sentence)
}

/** The command, a flag or a variable is invalid; nothing was tried. */
export function wrongUsage(sentence: string): Stop {
  return new Stop(2, sentence)
}
