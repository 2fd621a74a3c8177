/** A service on each engine for the tests of a file. */
import { after, before } from 'node:test'
import { testDatabases } from './postgres-server.ts'
import { startService, type Service } from './service.ts'

export interface EngineService {
  engine: 'sqlite' | 'postgres'
  service: Service
}

/**
 * Starts both before the tests and closes them after. Returns an array with the results of `prepare`, which is empty until
 * then. There is one hook, because hooks of a file run at the same time.
 */
export function startOnBothEngines<Prepared>(
  flags: Record<string, string>,
  prepare: (started: EngineService) => Prepared | Promise<Prepared>,
): readonly Prepared[] {
  const prepared: Prepared[] = []
  const opened = new AsyncDisposableStack()
  async function start(engine: EngineService['engine'], own: Record<string, string>): Promise<Prepared> {
    const service = await startService({ ...flags, ...own })
    opened.defer(() => service.close())
    return prepare({ engine, service })
  }
  before(
    async () => {
      const databases = await testDatabases()
      opened.defer(() => databases.close())
      const database = await databases.create()
      opened.defer(() => database.drop())
      prepared.push(...(await Promise.all([start('sqlite', {}), start('postgres', { databaseUrl: database.url })])))
    },
    { timeout: 900_000 },
  )
  after(() => opened.disposeAsync())
  return prepared
}
