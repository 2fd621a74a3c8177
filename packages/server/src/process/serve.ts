/** With several workers, the parent process does not load the server. */
import cluster from 'node:cluster'
import type { Config } from '../config/config.ts'

export async function serve(config: Config): Promise<void> {
  if (config.workers > 1 && cluster.isPrimary) {
    const { runWorkers } = await import('./workers.ts')
    return runWorkers(config)
  }
  const { runServer } = await import('./main.ts')
  return runServer(config)
}
