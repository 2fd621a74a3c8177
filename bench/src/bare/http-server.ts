import path from 'node:path'
import { startProcess, type ServerProcess } from '../server-process.ts'

/** Starts a server of http.ts; its errors are written into the folder. */
export function startBareServer(place: string, kind: string, ...args: string[]): Promise<ServerProcess> {
  return startProcess({
    args: [path.join(import.meta.dirname, 'http.ts'), kind, ...args],
    logFile: path.join(place, `${kind}.log`),
    readyPath: '/ready',
  })
}
