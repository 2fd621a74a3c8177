import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'

const LOG = new URL('../../src/process/log.ts', import.meta.url).href

test('lines that a stopped reader has lost are counted, and a line says how many when it reads again', async () => {
  const program = `import { createLog } from '${LOG}'
    const { logger, leave, droppedLines } = createLog('info')
    for (let n = 0; n < 40_000; n++) logger.info({ n }, 'x'.repeat(200))
    process.stdout.write(String(droppedLines()))
    setTimeout(() => void leave(0), 500)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  child.stderr.pause()
  const [counted] = (await once(child.stdout, 'data')) as [Buffer]
  const dropped = Number(String(counted))
  assert.ok(dropped > 5_000, `${dropped} lines`)
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  child.stderr.resume()
  await once(child, 'close')
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { n?: number; droppedLines?: number })
  assert.equal(
    lines.reduce((sum, line) => sum + (line.droppedLines ?? 0), 0),
    dropped,
  )
  assert.equal(lines.filter(({ n }) => n !== undefined).length, 40_000 - dropped)
})
