/** Whether messages are drawn as Markdown: the choice of this browser. */
import { useSyncExternalStore } from 'react'

const REMEMBERED = 'tacho.raw-messages'
const listeners = new Set<() => void>()

const isRaw = (): boolean => localStorage.getItem(REMEMBERED) !== null

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useRawMessages(): boolean {
  return useSyncExternalStore(subscribe, isRaw)
}

export function turnRawMessages(): void {
  if (isRaw()) localStorage.removeItem(REMEMBERED)
  else localStorage.setItem(REMEMBERED, '1')
  for (const listener of listeners) listener()
}
