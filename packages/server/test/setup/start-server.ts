/**
 * Starts a server in this process, from the build of `npm test`, because loading a thousand sources takes longer than most
 * tests. Without that build, it starts from the sources. A new embedded store begins as a copy (migrated-store.ts).
 */
import type * as main from '../../src/process/main.ts'
import { placeStore } from './migrated-store.ts'

const SOURCE = new URL('../../src/process/main.ts', import.meta.url).href
const built = new Map(JSON.parse(process.env['TEST_MODULES'] ?? '[]') as [source: string, built: string][])

const { startServer: start } = (await import(built.get(SOURCE) ?? SOURCE)) as typeof main

export const startServer: typeof start = async (config, options) => {
  if (config.databaseUrl === null) await placeStore(config.dataDir)
  return start(config, options)
}
