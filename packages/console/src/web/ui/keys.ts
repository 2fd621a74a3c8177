/**
 * Keyboard shortcuts of a page. A name is a key (`j`, `?`, `Escape`), one with Ctrl or Command (`mod+k`), or two in
 * sequence (`g r`). Keys have no effect while a person types or a dialog is open.
 */
import { useLayoutEffect, useRef, type RefObject, useEffect, useState } from 'react'

type Keys = Readonly<Record<string, (() => void) | NamedAct>>

/** An act with a key. If it has a name, the command palette offers it too. */
export interface NamedAct {
  name: string
  act: () => void
}

/** The shortcuts of the visible pages. */
const bound = new Set<RefObject<Keys>>()

/** Named acts of the visible page, with their keys. */
export function actsOnScreen(): (NamedAct & { key: string })[] {
  return [...bound].flatMap(({ current }) =>
    Object.entries(current).flatMap(([key, act]) => (typeof act === 'function' ? [] : [{ key, ...act }])),
  )
}

const STORED = 'tacho.keys'

/** Speech input can press keys of one character by mistake (WCAG 2.1.4), so each browser can switch them off. */
export function areKeysOn(): boolean {
  return localStorage.getItem(STORED) !== 'off'
}

export function switchKeys(isOn: boolean): void {
  localStorage.setItem(STORED, isOn ? 'on' : 'off')
}

const SEQUENCE_MS = 1_000

/** Keys that repeat while they are held. Any other key acts once: a held `e` would resolve row after row. */
const REPEATED = /^[jk+-]$/

export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  // A layout effect, so that keys work as soon as the page is visible.
  useLayoutEffect(() => {
    latest.current = keys
  })
  useLayoutEffect(() => {
    bound.add(latest)
    return () => void bound.delete(latest)
  }, [])
  useLayoutEffect(() => {
    let first: { key: string; at: number } | null = null
    function onKeyDown(event: KeyboardEvent): void {
      if (event.defaultPrevented || event.altKey || document.querySelector('dialog[open]')) return
      const mod = event.ctrlKey || event.metaKey
      if (!mod && event.key.length === 1 && !areKeysOn()) return
      // An editor has a tree of its own, in which the real target is; the event's target is only its host.
      if (!mod && isTyping(event.composedPath()[0] ?? null)) return
      const key = mod ? `mod+${event.key.toLowerCase()}` : event.key
      const sequence = first && event.timeStamp - first.at < SEQUENCE_MS ? `${first.key} ${key}` : null
      first = { key, at: event.timeStamp }
      const name = [sequence, key].find((name) => name !== null && Object.hasOwn(latest.current, name))
      if (name === undefined || name === null) return
      event.preventDefault()
      first = null
      if (event.repeat && !REPEATED.test(name)) return
      const act = latest.current[name]
      if (typeof act === 'function') act()
      else act?.act()
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])
}

/** Types of input elements without text. */
const BUTTONS = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'file'])

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !BUTTONS.has(target.type)
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName))
}

interface Options<Item> {
  items: readonly Item[]
  /** Identifies an item, so that the selection follows it when new items move it. */
  keyOf: (item: Item) => string
  open: (item: Item) => void
  /** When this changes, the selection starts again. */
  reset: unknown
  more?: Keys
}

/**
 * `j` and `k` move through a list, and Enter opens an item. Returns the selected item. If it disappears, for example
 * because it was resolved, the keys continue from its position.
 */
export function useListKeys<Item>({ items, keyOf, open, reset, more }: Options<Item>): Item | undefined {
  const [chosen, choose] = useState<{ key: string; at: number } | null>(null)
  useEffect(() => choose(null), [reset])
  const at = items.findIndex((item) => keyOf(item) === chosen?.key)
  const current = items[at]
  const move = (by: number) => {
    // After a row disappears, the row below it is in its place, so `j` does not advance.
    const from = current === undefined && chosen !== null ? chosen.at - (by > 0 ? 1 : 0) : at
    const next = Math.max(0, Math.min(items.length - 1, from + by))
    const item = items[next]
    choose(item === undefined ? null : { key: keyOf(item), at: next })
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ...(current !== undefined && { Enter: () => open(current) }),
    ...more,
  })
  return current
}
