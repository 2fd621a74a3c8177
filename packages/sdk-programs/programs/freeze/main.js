// Simulates a platform such as AWS Lambda: it freezes the process after each answer, and continues it for the next call.
import process from 'node:process'
import readline from 'node:readline'
import { Tacho } from '@tacho/sdk'

// On a slow machine, the client must not give up waiting for its policies.
const guard = { configurationWaitMs: 60_000 }
const tacho = new Tacho({ agentName: 'freeze', guard, flushIntervalMs: 60_000, configuration: { refreshMs: 1_000 } })
const refund = tacho.guard(async (amount) => `paid ${amount}`, { name: 'refund' })

const handler = () => tacho.withRun(() => refund(100).catch(({ name }) => name))

readline.createInterface({ input: process.stdin }).on('line', async () => console.log(await handler()))
console.log('ready')
