import path from 'node:path'
import { startProcess, type ServerProcess, type Usage } from '../server-process.ts'

export interface BareServer extends ServerProcess {
  usage(): Promise<Usage>
}

/** Starts a server of http.ts. Its errors go to a file in `place`. */
export async function startBareServer(place: string, kind: string, ...args: string[]): Promise<BareServer> {
  const started = await startProcess({
    args: [path.join(import.meta.dirname, 'http.ts'), kind, ...args],
    logFile: path.join(place, `${kind}.log`),
    readyPath: '/usage',
  })
  return {
    ...started,
    async usage() {
      const { rss, cpu } = (await (await fetch(`${started.url}/usage`)).json()) as {
        rss: number
        cpu: NodeJS.CpuUsage
      }
      return { megabytes: rss / 1e6, cpuSeconds: (cpu.user + cpu.system) / 1e6 }
    },
  }
}
