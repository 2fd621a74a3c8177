/** Progress of a long command, on stderr: a bar on a terminal, a line now and then elsewhere. */

export interface Progress {
  /** `done` is the sum so far, in the unit of the total. */
  update(done: number, text: string): void
  /** A line that stays, beside the bar. */
  note(line: string): void
  end(text: string): void
}

const LINE_EVERY_MS = 5_000
/** What a bar with its text takes; some terminals do not tell their size and have none. */
const FEWEST_COLUMNS = 75

/** `total` null: unknown. */
export async function startProgress(title: string, total: number | null): Promise<Progress> {
  // The bar reads the keyboard, which must not be where the data comes from.
  const canDraw = process.stderr.isTTY && process.stdin.isTTY && process.stderr.columns >= FEWEST_COLUMNS
  return canDraw && total !== null ? startBar(title, total) : startLines(title)
}

function startLines(title: string): Progress {
  let last = Date.now()
  const print = (text: string): void => void process.stderr.write(`${text}\n`)
  return {
    update(_done, text) {
      if (Date.now() - last < LINE_EVERY_MS) return
      last = Date.now()
      print(`${title}: ${text}`)
    },
    note: print,
    end: () => {},
  }
}

async function startBar(title: string, total: number): Promise<Progress> {
  const { progress } = await import('@clack/prompts')
  const bar = progress({ max: total, output: process.stderr, withGuide: false })
  // The bar answers Ctrl-C itself, and with success; an interrupted command has not succeeded.
  const interrupted = (): void => void (process.exitCode = 130)
  process.once('exit', interrupted)
  bar.start(title)
  let shown = 0
  return {
    update(done, text) {
      bar.advance(done - shown, `${title}: ${text}`)
      shown = done
    },
    note: (line) => void process.stderr.write(`\r\u001b[K${line}\n`),
    end(text) {
      bar.stop(text)
      process.removeListener('exit', interrupted)
    },
  }
}
