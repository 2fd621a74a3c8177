import { useMemo, useState } from 'react'
import { Copy } from '../ui/copy.tsx'
import { counted, number } from './format.ts'
import { searchJson, pathOf } from './json-search.ts'
import { LongText } from './long-text.tsx'
import { ShownText } from './shown-text.tsx'

/** A JSON value with a search field. A search replaces the tree by the paths where the text occurs. */
export function JsonView({ value }: { value: unknown }) {
  const [text, setText] = useState('')
  const foundPlaces = useMemo(() => (text.trim() === '' ? null : searchJson(value, text)), [value, text])
  return (
    <>
      <div className="mb-2 flex items-center gap-2">
        <input
          type="search"
          aria-label="Search in the payload"
          placeholder="Search names and values"
          value={text}
          onChange={(event) => setText(event.target.value)}
          className="field w-full max-w-64 min-w-0"
        />
        <span aria-live="polite" className="tabular text-sm whitespace-nowrap text-soft">
          {foundPlaces && `${foundPlaces.isCut ? 'first ' : ''}${counted(foundPlaces.hits.length, 'hit')}`}
        </span>
      </div>
      {foundPlaces === null ? (
        <JsonTree value={value} />
      ) : (
        <ol aria-label="Hits">
          {foundPlaces.hits.map(({ path, value }) => (
            <li key={path} className="border-b border-line py-1 last:border-0">
              <div className="flex items-center gap-1">
                <bdi className="min-w-0 font-mono text-xs [overflow-wrap:anywhere] text-soft">{path}</bdi>
                <Copy text={path} label="Copy path" />
              </div>
              <JsonTree value={value} level={2} path={path} />
            </li>
          ))}
        </ol>
      )}
    </>
  )
}

/** Levels that are initially open. */
const OPEN_LEVELS = 2
const CHILDREN_SHOWN = 100

/** A JSON value that can be folded and copied. Children of a folded value are not in the page. */
export function JsonTree({ value, level = 0, path = '' }: { value: unknown; level?: number; path?: string }) {
  if (typeof value === 'string') return <JsonText text={value} />
  if (typeof value !== 'object' || value === null)
    return <span className="font-mono text-[0.8125rem] text-violet">{String(value)}</span>
  return <Branch value={value} level={level} path={path} />
}

function JsonText({ text }: { text: string }) {
  return (
    <span className="text-green">
      <LongText text={text} mono quoted />
    </span>
  )
}

function Branch({ value, level, path }: { value: object; level: number; path: string }) {
  const isList = Array.isArray(value)
  const entries = Object.entries(value)
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS && entries.length <= CHILDREN_SHOWN)
  const [shown, setShown] = useState(CHILDREN_SHOWN)
  if (entries.length === 0) return <span className="font-mono text-[0.8125rem] text-soft">{isList ? '[]' : '{}'}</span>
  const size = `${number(entries.length)} ${isList ? 'item' : 'field'}${entries.length === 1 ? '' : 's'}`
  return (
    <div className="min-w-0">
      <span className="group inline-flex items-center gap-1">
        <button
          type="button"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
          className="rounded font-mono text-xs text-soft hover:text-ink"
        >
          <span aria-hidden>{isOpen ? '▾ ' : '▸ '}</span>
          {isList ? `[${size}]` : `{${size}}`}
        </button>
        <Copy text={() => JSON.stringify(value, null, 2)} />
      </span>
      {isOpen && (
        <dl className="ml-1.5 border-l border-line pl-3">
          {entries.slice(0, shown).map(([key, child]) => {
            const childPath = pathOf(path, key, isList)
            return (
              <div key={key} className={`group/key ${isNested(child) ? 'py-px' : 'flex gap-2 py-px'}`}>
                <dt className="shrink-0 font-mono text-[0.8125rem] text-soft">
                  <bdi>
                    <ShownText text={key} />
                  </bdi>
                  :
                  <span className="opacity-0 group-focus-within/key:opacity-100 group-hover/key:opacity-100">
                    <Copy text={childPath} label="path" />
                  </span>
                </dt>
                <dd className="min-w-0">
                  <JsonTree value={child} level={level + 1} path={childPath} />
                </dd>
              </div>
            )
          })}
          {shown < entries.length && (
            <button type="button" onClick={() => setShown(shown + 10 * CHILDREN_SHOWN)} className="link text-xs">
              {number(entries.length - shown)} more
            </button>
          )}
        </dl>
      )}
    </div>
  )
}

function isNested(value: unknown): boolean {
  if (typeof value === 'string') return value.length > 60
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}
