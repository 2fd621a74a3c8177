import { setTimeout as sleep } from 'node:timers/promises'
import { Tacho } from '@tacho/sdk'
import express from 'express'

const tacho = new Tacho()
const refund = tacho.guard(async (amount) => `paid ${amount}`, { name: 'refund' })

const app = express()
app.get('/refund', async (_request, response) => {
  const answer = await tacho.run({ agentName: 'express' }, () => refund(100).catch(({ name }) => name))
  response.send(answer)
})
app.get('/stream', async (_request, response) => {
  const parts = await tacho.run({ agentName: 'express stream' }, async function* () {
    yield 'first'
    await sleep(50)
    yield await refund(1).catch(({ name }) => name)
  })
  for await (const part of parts) response.write(part)
  response.end()
})
// The host's own shutdown closes its server, while the SDK delivers.
const server = app.listen(0, () => console.log(`http://127.0.0.1:${server.address().port}`))
process.on('SIGTERM', () => server.close())
