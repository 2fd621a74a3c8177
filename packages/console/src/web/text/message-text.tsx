/** Texts of messages: as Markdown or raw, by this browser's setting. */
import { lazy, Suspense, useSyncExternalStore } from 'react'
import { LongText } from './long-text.tsx'
import { ShownText } from './shown-text.tsx'

/** Characters that Markdown may change. A text without them is the same in both forms. */
const MAYBE = /[*_`#>|[\]~]|^[ \t]*(?:[-+]|\d{1,9}[.)])[ \t]|^[-=]{3}|https?:\/\//m
/** A longer text is shown without formatting, because rendering it would block the page. */
const CHARS_MAX = 10_000

const Markdown = lazy(() => import('./markdown.tsx'))

/** Texts of people and models. */
export function MessageText({ text }: { text: string }) {
  const isRaw = useRawMessages()
  if (isRaw || text.length > CHARS_MAX || !MAYBE.test(text)) return <LongText text={text} />
  return (
    <LongText
      text={text}
      draw={(shown) => (
        <Suspense fallback={<ShownText text={shown} lineBreaks />}>
          <Markdown text={shown} />
        </Suspense>
      )}
    />
  )
}

/** Whether to render messages as Markdown: a setting of this browser. */

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
