/** Stores drafts in the tab until they are sent, so that a reload, a sign-in or a crash loses nothing. */
import { useState } from 'react'

const PREFIX = 'tacho.draft.'
/**
 * Maximum length of a stored draft, because a browser stores 5 MB for a page. A longer text exists only in the page.
 */
const MOST_CHARS = 300_000

interface DraftState<Value> {
  value: Value
  set: (value: Value) => void
  /** Forgets the draft, after it was sent or to start again. */
  forget: () => void
  /** Whether the draft was restored after a reload. */
  wasBack: boolean
}

/**
 * `name` identifies the draft, with the version that it changes. `initial` is a text, or an object of texts: a stored
 * draft of another shape is ignored.
 */
export function useDraftState<Value extends string | object>(name: string, initial: Value): DraftState<Value> {
  const [state, setState] = useState(() => {
    const before = readDraft(name, initial)
    return { name, value: before ?? initial, wasBack: before !== null }
  })
  // The form has changed to another item, so load that item's draft.
  if (state.name !== name) {
    const before = readDraft(name, initial)
    setState({ name, value: before ?? initial, wasBack: before !== null })
  }
  return {
    ...state,
    set(value) {
      setState({ name, value, wasBack: false })
      writeDraft(name, JSON.stringify(value) === JSON.stringify(initial) ? null : value)
    },
    forget() {
      setState({ name, value: initial, wasBack: false })
      writeDraft(name, null)
    },
  }
}

/** Forgets a draft that was sent outside its form. */
export function forgetDraft(name: string): void {
  writeDraft(name, null)
}

/** Forgets all drafts, so that the next person at this browser does not find them. */
export function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
}

function readDraft<Value extends string | object>(name: string, initial: Value): Value | null {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(PREFIX + name) ?? 'null')
    if (value === null || typeof value !== typeof initial) return null
    if (typeof value === 'object') {
      const keys = Object.keys(initial)
      const isAlike =
        Object.keys(value).length === keys.length &&
        keys.every((key) => typeof Reflect.get(value, key) === typeof Reflect.get(initial as object, key))
      if (!isAlike) return null
    }
    return value as Value
  } catch {
    return null
  }
}

function writeDraft(name: string, value: unknown): void {
  try {
    const text = JSON.stringify(value)
    if (value === null || text.length > MOST_CHARS) sessionStorage.removeItem(PREFIX + name)
    else sessionStorage.setItem(PREFIX + name, text)
  } catch {
    // The storage is unavailable or full. The text stays in the page.
  }
}
