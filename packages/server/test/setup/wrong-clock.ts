import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** NODE_OPTIONS of a process whose clock is ahead by the number in a file, in milliseconds. */
export function wrongClock(folder: string, offsetMs: number) {
  const [offset, module] = [path.join(folder, 'offset'), path.join(folder, 'clock.mjs')]
  writeFileSync(offset, String(offsetMs))
  writeFileSync(
    module,
    `import { readFileSync } from 'node:fs'
const now = Date.now
let [readAt, ahead] = [-1000, 0]
Date.now = () => {
  if (performance.now() - readAt > 100) [readAt, ahead] = [performance.now(), Number(readFileSync(${JSON.stringify(offset)}, 'utf8'))]
  return now() + ahead
}`,
  )
  return { options: `--import=${pathToFileURL(module).href}`, set: (ms: number) => writeFileSync(offset, String(ms)) }
}
