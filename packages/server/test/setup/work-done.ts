import assert from 'node:assert/strict'
import { eventually } from './eventually.ts'

/** How long the server shows one reading of its work. */
const READING_KEPT_MS = 1_000

/** Waits until no work of these kinds is left of what was queued before. */
export async function workDone({ url }: { url: string }, ...kinds: string[]): Promise<void> {
  const left = new RegExp(`tacho_work_items\\{kind="(?:${kinds.join('|')})"\\} [1-9]`)
  const asked = performance.now()
  await eventually(
    async () => {
      const isFresh = performance.now() - asked > READING_KEPT_MS
      const reply = await fetch(`${url}/metrics`)
      const text = await reply.text()
      assert.equal(reply.status, 200, text)
      return isFresh && !left.test(text)
    },
    `the work to be done: ${kinds.join(', ')}`,
  )
}
