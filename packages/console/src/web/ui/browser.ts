/** The page in its browser: light or dark, the title, scrolling to the active link, and saving a file. */
import { useEffect, useRef } from 'react'

/** Light or dark: the system's setting, unless the person chose. */
export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

const KEY = 'tacho.theme'

export function readTheme(): Theme {
  const stored = localStorage.getItem(KEY)
  return THEMES.find((theme) => theme === stored) ?? 'system'
}

export function applyTheme(theme: Theme = readTheme()): void {
  const { dataset } = document.documentElement
  if (theme === 'system') delete dataset['theme']
  else dataset['theme'] = theme
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme)
  applyTheme(theme)
}

let title = 'Tacho'
/** The number of waiting approvals, which is in the title of every page. */
let waiting = 0

function showTitle(): void {
  document.title = waiting > 0 ? `(${waiting}) ${title}` : title
}

export function useTitle(name: string): void {
  useEffect(() => {
    title = `${name} · Tacho`
    showTitle()
  }, [name])
}

export function useTitleCount(count: number): void {
  useEffect(() => {
    waiting = count
    showTitle()
    return () => {
      waiting = 0
      showTitle()
    }
  }, [count])
}

/**
 * Scrolls a row of links to the link of the current page, and fades its ends where there are more links. Starts again
 * when `place` changes.
 */
export function useActiveInSight<Row extends HTMLElement = HTMLElement>(place: string) {
  const row = useRef<Row>(null)
  useEffect(() => {
    const element = row.current
    if (!element) return
    // Also when links change size because their counts arrive, or when the person's role adds links.
    const markEdges = () => {
      const { scrollLeft, scrollWidth, clientWidth } = element
      element.toggleAttribute('data-more-before', scrollLeft > 1)
      element.toggleAttribute('data-more-after', scrollLeft + clientWidth < scrollWidth - 1)
    }
    const watcher = new ResizeObserver(() => {
      bringIntoSight(element)
      markEdges()
    })
    element.addEventListener('scroll', markEdges, { passive: true })
    const watch = () => {
      watcher.disconnect()
      for (const link of [element, ...element.children]) watcher.observe(link)
    }
    const links = new MutationObserver(watch)
    links.observe(element, { childList: true })
    watch()
    return () => {
      element.removeEventListener('scroll', markEdges)
      watcher.disconnect()
      links.disconnect()
    }
  }, [place])
  return row
}

function bringIntoSight(row: HTMLElement): void {
  const active = row.querySelector<HTMLElement>('[data-status=active]')
  if (!active) return
  // Not `scrollIntoView`, which would scroll the page too.
  const [at, within] = [active.getBoundingClientRect(), row.getBoundingClientRect()]
  row.scrollLeft += at.left - within.left - (within.width - at.width) / 2
}

/** Saves a text as a file. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** A CSV file (RFC 4180). A text that a spreadsheet could read as a formula gets an apostrophe in front. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    if (typeof value === 'number') return String(value)
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}
