import { useMemo, useState } from 'react'
import { Copy } from '../ui/copy.tsx'
import { counted } from './format.ts'
import { searchJson } from './json-search.ts'
import { JsonTree } from './json-tree.tsx'

/** A JSON value with a search: in place of the tree, the paths where the text occurs. */
export function JsonView({ value }: { value: unknown }) {
  const [text, setText] = useState('')
  const found = useMemo(() => (text.trim() === '' ? null : searchJson(value, text)), [value, text])
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
          {found && `${found.isCut ? 'first ' : ''}${counted(found.hits.length, 'hit')}`}
        </span>
      </div>
      {found === null ? (
        <JsonTree value={value} />
      ) : (
        <ol aria-label="Hits">
          {found.hits.map(({ path, value }) => (
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
