/** Shows long texts and images of recorded payloads. */
import { useState, type ReactNode } from 'react'
import { bytes, counted, number } from './format.ts'
import { Copy } from '../ui/copy.tsx'
import { ShownText } from './shown-text.tsx'

const FOLDED_CHARS = 1_200
/** A text is folded only if this hides more characters. */
const SLACK_CHARS = 300
const BASE64 = /^(?:data:([\w.+/-]{1,100})[^,]{0,100};base64,)?[A-Za-z0-9+/_-]{400,}={0,2}$/

const FOLDED_LINES = 24

interface Props {
  text: string
  mono?: boolean
  /** Show quotation marks, for example for a text among numbers. */
  quoted?: boolean
  /** Renders the visible part. Default: as plain text. */
  draw?: (shown: string) => ReactNode
}

/**
 * Recorded text as plain text, with invisible characters as escapes. A long text is folded and shows its length; base64
 * shows its size.
 */
export function LongText({ text, mono = false, quoted = false, draw }: Props) {
  const [isOpen, setOpen] = useState(false)
  const encoded = BASE64.exec(text)
  if (encoded && !isOpen) {
    return (
      <span className="inline-flex flex-wrap items-center gap-1.5 text-sm text-soft">
        {drawable(text) && <img src={text} alt="" className="block max-h-96 max-w-full basis-full object-contain" />}
        <span className="rounded bg-hover px-1.5">
          {encoded[1] ?? 'base64'}, {bytes(Math.floor((text.length * 3) / 4))}
        </span>
        <Copy text={text} />
        <Fold onClick={() => setOpen(true)}>Show the text</Fold>
      </span>
    )
  }
  const end = foldAt(text)
  const isLong = end < text.length
  const shown = isLong && !isOpen ? text.slice(0, end).toWellFormed() : text
  return (
    <>
      {draw ? (
        <div dir="auto" className="[unicode-bidi:isolate] wrap-anywhere">
          {draw(shown)}
          {isLong && !isOpen && '…'}
        </div>
      ) : (
        <span
          dir="auto"
          className={`block whitespace-pre-wrap [unicode-bidi:isolate] ${mono ? 'font-mono text-[0.8125rem]' : ''}`}
        >
          <ShownText text={shown} lineBreaks quoted={quoted} />
          {isLong && !isOpen && '…'}
        </span>
      )}
      {isLong && (
        <span className="mt-1 flex gap-1">
          <Fold onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show less' : `Show all ${counted(text.length, 'character')}`}
          </Fold>
          <Copy text={text} label={`Copy ${number(text.length)} characters`} />
        </span>
      )}
    </>
  )
}

/** How many characters of a text are visible when folded: all, or its first lines. */
function foldAt(text: string): number {
  const chars = text.length > FOLDED_CHARS + SLACK_CHARS ? FOLDED_CHARS : text.length
  let end = -1
  for (let line = 0; line < FOLDED_LINES; line++) {
    end = text.indexOf('\n', end + 1)
    if (end === -1 || end >= chars) return chars
  }
  return text.length - end < SLACK_CHARS && text.indexOf('\n', end + 1) === -1 ? chars : end
}

function Fold({ onClick, children }: { onClick: () => void; children: ReactNode }) {
  return (
    <button type="button" onClick={onClick} className="link text-xs font-medium">
      {children}
    </button>
  )
}

const ADDRESS_CHARS = 200

/** An image in a message, if its address contains the data: nothing is loaded from elsewhere. */
export function SentImage({ address, text }: { address: string; text: string }) {
  if (drawable(address)) return <img src={address} alt={text} className="inline-block max-h-96 max-w-full" />
  const shown = address.length > ADDRESS_CHARS ? `${address.slice(0, ADDRESS_CHARS).toWellFormed()}…` : address
  return (
    <span className="text-soft">
      Image not loaded: <ShownText text={text} /> (<ShownText text={shown} />)
    </span>
  )
}

export function SentImages({ addresses }: { addresses: readonly string[] }) {
  return addresses.map((address, at) => (
    <p key={at} className="mt-2">
      <SentImage address={address} text="image of the message" />
    </p>
  ))
}

const IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/
/** Images up to 1 MiB are shown, but not SVG, which can contain scripts. */
const CHARS_MAX = 1_398_200

/** Whether an address contains an image to show. No other image is ever loaded. */
const drawable = (address: string): boolean => address.length <= CHARS_MAX && IMAGE.test(address)
