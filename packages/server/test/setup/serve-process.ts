/** The process that main.test.ts and its like start: serve with the configuration of its environment. */
import { readConfig } from '../../src/config/config.ts'
import { serve } from '../../src/process/serve.ts'

const read = readConfig({}, process.env)
if (!read.ok) throw new Error(read.faults.join('\n'))
// A bug, at a moment of the test's choosing.
process.on('SIGUSR2', () => void Promise.reject(new Error('nobody catches this')))
await serve(read.config)
