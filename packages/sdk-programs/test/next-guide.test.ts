/** docs/sdk/nextjs.md, followed in `next dev`. Needs TACHO_TEST_FRAMEWORKS=1. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { ADDRESS, isEnded, NEXT_16, textOf } from './next.ts'
import { startPlace } from './place.ts'
import { startService } from './service.ts'

test('the guide, as a newcomer follows it', { skip: NEXT_16.skip }, async (t) => {
  const service = await startService(t)
  const place = await startPlace(t, 'next-guide', NEXT_16.packages)
  const guide = readFileSync(new URL('../../../docs/sdk/nextjs.md', import.meta.url), 'utf8')
  const files = [...guide.matchAll(/^```ts\n\/\/ (\S+)\n(.*?)^```$/gms)]
  assert.equal(files.length, 2)
  for (const [, name = '', text = ''] of files) {
    const file = path.join(place.folder, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const { url } = await place.serve(['next', 'dev', '-p', '0'], ADDRESS, service.env)
  const ask = () => textOf(`${url}/api/agent?amount=20`)
  assert.equal(await ask(), 'Let me see. Refunded 20.\n')
  const events = await service.until('shop', isEnded)
  assert.deepEqual(
    events.map(({ label }) => label),
    ['user input', 'refund', 'refund', 'completed'],
  )
  service.block('refund')
  while (!(await ask()).includes('refund was not run')) await sleep(1_000)
})
