/**
 * Starts a server in this process: the one that `npm test` has built, because loading a thousand sources takes longer than most
 * tests. A test file that runs alone starts the sources.
 */
import type * as main from '../../src/process/main.ts'

const SOURCE = new URL('../../src/process/main.ts', import.meta.url).href
const built = new Map(JSON.parse(process.env['TEST_MODULES'] ?? '[]') as [source: string, built: string][])

export const { startServer } = (await import(built.get(SOURCE) ?? SOURCE)) as typeof main
