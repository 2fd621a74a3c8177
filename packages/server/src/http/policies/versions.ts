import { refuse, type Refusal } from '../web/reply-error.ts'

export function newerVersion(newest: { version: string; author: string }): Refusal {
  const detail = `A newer version exists: ${newest.version}, by ${newest.author}`
  return refuse('conflict', detail, { current: { ...newest } })
}
