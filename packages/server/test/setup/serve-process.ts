/** The server process of tests: serves with the configuration of its environment. */
import { readConfig } from '../../src/config/config.ts'
import { serve } from '../../src/process/serve.ts'

const read = readConfig({}, process.env)
if (!read.ok) throw new Error(read.faults.join('\n'))
// Lets a test cause an uncaught error.
process.on('SIGUSR2', () => void Promise.reject(new Error('nobody catches this')))
await serve(read.config)
