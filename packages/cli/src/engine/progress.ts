/** Progress of a long command, on stderr: a bar on a terminal, otherwise a line every 5 seconds. */

export interface Progress {
  /** @param done the sum so far, in the unit of the total. */
  update(done: number, text: string): void
  /** Prints a permanent line above the bar. */
  note(line: string): void
  end(text: string): void
}

const LINE_EVERY_MS = 5_000
/** A narrower terminal, or one of unknown size, gets no bar. */
const FEWEST_COLUMNS = 75

/** @param total null: unknown. */
export async function startProgress(title: string, total: number | null): Promise<Progress> {
  // The bar reads keys from stdin, so stdin must be a terminal and not the data.
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
  // The bar would exit with 0 on Ctrl-C, but an interrupted command must exit with 130.
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
