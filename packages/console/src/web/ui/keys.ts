/**
 * Keys of a page. A name is a key (`j`, `?`, `Escape`), one with Ctrl or Command (`mod+k`), or two after each other (`g r`).
 * Nothing happens while a person types, or while a dialog is open.
 */
import { useLayoutEffect, useRef, type RefObject, useEffect, useState } from 'react'

type Keys = Readonly<Record<string, (() => void) | NamedAct>>

/** An act with a key. If it has a name, the command palette offers it too. */
export interface NamedAct {
  name: string
  act: () => void
}

/** The keys of the pages on screen. */
const bound = new Set<RefObject<Keys>>()

/** Acts of the page on screen, with their keys. */
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

/** Keys that go on while they are held. Each other one acts once: a held `e` would resolve row after row. */
const REPEATED = /^[jk+-]$/

export function useKeys(keys: Keys): void {
  const latest = useRef(keys)
  // With the page that shows them, not a moment later.
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
      // An editor has its own tree; the event's target is then only its host.
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

/** Inputs that take no text. */
const BUTTONS = new Set(['checkbox', 'radio', 'button', 'submit', 'reset', 'file'])

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !BUTTONS.has(target.type)
  return target instanceof HTMLElement && (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName))
}

interface Options<Item> {
  items: readonly Item[]
  /** A choice stays with its item, wherever new items move it. */
  keyOf: (item: Item) => string
  open: (item: Item) => void
  /** The list begins again when this changes. */
  reset: unknown
  more?: Keys
}

/**
 * `j` and `k` move through a list, Enter opens. Returns the chosen row. If that row has disappeared, such as an issue
 * that was resolved, they continue from its place.
 */
export function useListKeys<Item>({ items, keyOf, open, reset, more }: Options<Item>): Item | undefined {
  const [chosen, choose] = useState<{ key: string; at: number } | null>(null)
  useEffect(() => choose(null), [reset])
  const at = items.findIndex((item) => keyOf(item) === chosen?.key)
  const current = items[at]
  const move = (by: number) => {
    // The row below a row that disappeared is now in its place.
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
