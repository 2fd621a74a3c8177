/** Asks a person: to confirm what cannot be undone, and for a secret. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { wrongUsage } from './stop.ts'

/** Asks before what cannot be undone. */

export interface ConfirmOptions {
  yes?: true | undefined
  json?: true | undefined
}

/** Ends the command if the answer is no, or if there is neither --yes nor a terminal to ask on. */
export async function assertConfirmed(question: string, options: ConfirmOptions): Promise<void> {
  if (options.yes) return
  if (!canAsk(options)) throw wrongUsage(`${question} This cannot be undone: add --yes. Nothing was changed.`)
  if (!(await confirmed(question))) throw wrongUsage('Nothing was changed.')
}

export function canAsk({ json }: ConfirmOptions): boolean {
  return !json && process.stdin.isTTY && process.stdout.isTTY
}

/** Asks yes or no. Ctrl-C ends the command. */
export async function confirmed(question: string): Promise<boolean> {
  const { confirm, isCancel } = await import('@clack/prompts')
  const answer = await confirm({ message: question, initialValue: false })
  if (isCancel(answer)) process.exit(130)
  return answer
}

/** Reads a secret: without echo on a terminal, else one line of standard input. */

export async function askSecret(question: string): Promise<string> {
  const { stdin, stderr } = process
  if (!stdin.isTTY) return text(stdin)
  stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: stdin, output: silent, terminal: true })
  const interrupted = new AbortController()
  lines.once('SIGINT', () => interrupted.abort())
  try {
    return await lines.question('', { signal: interrupted.signal })
  } catch {
    process.exit(130)
  } finally {
    lines.close()
    stderr.write('\n')
  }
}
