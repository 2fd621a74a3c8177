/** Ends a command early, with one sentence on stderr and an exit code. There is no other way. */
export class Stop extends Error {
  readonly exitCode: 1 | 2

  constructor(exitCode: 1 | 2, sentence: string) {
    super(sentence)
    this.name = 'Stop'
    this.exitCode = exitCode
  }
}

/** Ends a valid command that failed. */
export function failed(sentence: string): Stop {
  return new Stop(1, sentence)
}

/** Ends an invalid command, or one with an invalid flag or variable, before it has done anything. */
export function wrongUsage(sentence: string): Stop {
  return new Stop(2, sentence)
}
