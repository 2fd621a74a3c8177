import { indented } from '@tacho/contract/record/json-text.ts'
import { useState, type ReactNode } from 'react'
import { Copy } from '../ui/copy.tsx'
import { counted, number } from './format.ts'
import { Escape, ShownText } from './shown-text.tsx'

const FOLDED_CHARS = 4_000
/** Longest text after indentation, as a multiple: a deeply nested text would grow a lot. */
const GROWTH = 4

const TOKEN = /(?<text>"(?:[^"\\]|\\.)*"?)(?<key>\s*:)?|(?<value>[^\s",:[\]{}]+)|[\s,:[\]{}]+/gsu

/**
 * JSON with its recorded characters, only indented: a parser would round numbers and drop duplicate names. Texts keep
 * their quotation marks, so that "500" and 500 differ. Also accepts JSON that is cut off.
 */
export function JsonText({ json }: { json: string }) {
  const [isOpen, setOpen] = useState(false)
  const text = indented(json, GROWTH * json.length + FOLDED_CHARS)
  const isLong = text.length > 1.2 * FOLDED_CHARS
  const shown = isLong && !isOpen ? text.slice(0, FOLDED_CHARS).toWellFormed() : text
  return (
    <>
      <div className="font-mono text-[0.8125rem] [overflow-wrap:anywhere] whitespace-pre-wrap [unicode-bidi:isolate]">
        {tokensOf(shown)}
        {shown.length < text.length && '…'}
      </div>
      {isLong && (
        <span className="mt-1 flex gap-1">
          <button type="button" onClick={() => setOpen(!isOpen)} className="link text-xs font-medium">
            {isOpen ? 'Show less' : `Show all ${counted(json.length, 'character')}`}
          </button>
          <Copy text={json} label={`Copy ${number(json.length)} characters`} />
        </span>
      )}
    </>
  )
}

function tokensOf(json: string): ReactNode[] {
  return Array.from(json.matchAll(TOKEN), ({ 0: token, groups = {} }, at) => {
    const { text, key, value } = groups
    if (text !== undefined) {
      return (
        <span key={at}>
          <bdi className={key === undefined ? 'text-green' : 'text-soft'}>{escapesOf(text)}</bdi>
          {key}
        </span>
      )
    }
    if (value === undefined) return token
    return (
      <span key={at} className="text-violet">
        <ShownText text={value} />
      </span>
    )
  })
}

const ESCAPE = /(\\(?:u[0-9a-fA-F]{4}|.))/su

/** Breaks lines after escaped line breaks, so that a text of several lines is readable. */
function escapesOf(text: string): ReactNode[] {
  return text.split(ESCAPE).map((textPart, at) => {
    if (textPart === '') return null
    if (at % 2 === 0) return <ShownText key={at} text={textPart} />
    return [<Escape key={at} text={textPart} />, textPart === '\\n' && '\n']
  })
}
