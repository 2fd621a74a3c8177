/** Stops and continues a PostgreSQL of this machine. */
import { execFileSync } from 'node:child_process'
import pg from 'pg'

/** All processes of this PostgreSQL. */
export async function processesOf(url: string): Promise<number[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query<{ file: string }>("SELECT pg_read_file('postmaster.pid') AS file")
  await client.end()
  const postmaster = Number(rows[0]?.file.split('\n')[0])
  const children = execFileSync('ps', ['--ppid', String(postmaster), '-o', 'pid='], { encoding: 'utf8' })
  return [postmaster, ...children.trim().split(/\s+/).map(Number)]
}

export function signalAll(pids: number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // The session has ended in the meantime.
    }
  }
}
