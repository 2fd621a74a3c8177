import path from 'node:path'
import { startProcess, type Usage } from '../server-process.ts'

/** Starts a server of http.ts. It logs errors to a file in `place`. */
export async function startBareServer(place: string, kind: string, ...args: string[]) {
  const started = await startProcess({
    args: [path.join(import.meta.dirname, 'http.ts'), kind, ...args],
    logFile: path.join(place, `${kind}.log`),
    readyPath: '/usage',
  })
  return {
    ...started,
    async usage(): Promise<Usage> {
      const { rss, cpu } = (await (await fetch(`${started.url}/usage`)).json()) as {
        rss: number
        cpu: NodeJS.CpuUsage
      }
      return { megabytes: rss / 1e6, cpuSeconds: (cpu.user + cpu.system) / 1e6 }
    },
  }
}
