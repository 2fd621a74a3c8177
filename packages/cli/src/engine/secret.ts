/** Reads a secret: without echo on a terminal, else one line of standard input. */
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'

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
