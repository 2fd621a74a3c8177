/** The page in its browser: light or dark, its title, the active link in sight, a file to save. */
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
/** The number of waiting approvals; the title of every page shows it. */
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
 * A row of links that scrolls sideways shows the link of the page, and fades where there are more. Begins again when `place`
 * changes.
 */
export function useActiveInSight<Row extends HTMLElement = HTMLElement>(place: string) {
  const row = useRef<Row>(null)
  useEffect(() => {
    const element = row.current
    if (!element) return
    // Links grow when what they count arrives, and the last ones come with the person's role.
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
  // `scrollIntoView` would scroll the page too.
  const [at, within] = [active.getBoundingClientRect(), row.getBoundingClientRect()]
  row.scrollLeft += at.left - within.left - (within.width - at.width) / 2
}

/** Saves a text as a file on the person's machine. */
export function download(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}

/** RFC 4180. A text that a spreadsheet would take for a formula begins with an apostrophe. */
export function csv(rows: readonly (readonly (string | number)[])[]): string {
  const cell = (value: string | number) => {
    if (typeof value === 'number') return String(value)
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
  }
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}
