/** The process that main.test.ts starts: runServer with the configuration of its environment. */
import { readConfig } from '../src/config.ts'
import { runServer } from '../src/main.ts'

const { THROW_LATER, ...environment } = process.env
const read = readConfig({}, environment)
if (!read.ok) throw new Error(read.faults.join('\n'))
if (THROW_LATER) setTimeout(() => void Promise.reject(new Error('nobody catches this')), Number(THROW_LATER))
await runServer(read.config)
