import { eventually } from './eventually.ts'
import type { Service } from './service.ts'

/** How long the server shows one reading of its work. */
const READING_KEPT_MS = 1_000

/** Waits until no work of these kinds is left of what was queued before. */
export async function workDone(service: Service, ...kinds: string[]): Promise<void> {
  const left = new RegExp(`tacho_work_items\\{kind="(?:${kinds.join('|')})"\\} [1-9]`)
  const asked = performance.now()
  await eventually(
    async () => {
      const isFresh = performance.now() - asked > READING_KEPT_MS
      const { text } = await service.call<string>('/metrics')
      return isFresh && !left.test(text)
    },
    `the work to be done: ${kinds.join(', ')}`,
  )
}
