import { lookalikes, shownParts, type ShownPart } from '@tacho/contract/engine/shown-text.ts'
import type { SnippetPart } from '@tacho/contract/runs/search.ts'

interface Props {
  text: string
  /** Whether to show line breaks as such, for texts of several lines. */
  lineBreaks?: boolean
  /** Whether to add quotation marks, which show that the text is a client's. */
  quoted?: boolean
}

/** A client's text: invisible characters are escaped, and words with letters of two scripts are marked. */
export function ShownText({ text, lineBreaks = false, quoted = false }: Props) {
  const parts = shownParts(text, { lineBreaks })
  // Use the other kind of quotation marks if the text contains these.
  const marks = /["“”]/.test(text) ? '‘’' : '“”'
  return (
    <>
      {quoted && <Mark>{marks[0]}</Mark>}
      {/* The index is the key, because parts have no other identity. */}
      {parts.map((shownPart, at) => (
        <Part key={at} part={shownPart} />
      ))}
      {quoted && <Mark>{marks[1]}</Mark>}
    </>
  )
}

function Part({ part }: { part: ShownPart }) {
  if (part.kind === 'text') return part.text
  if (part.kind === 'lookalike') {
    return (
      <span title={part.note} className="text-amber underline decoration-wavy">
        {part.text}
      </span>
    )
  }
  return <Escape text={part.text} />
}

/** An escaped character, in a form that typed letters cannot imitate. */
export function Escape({ text }: { text: string }) {
  return (
    // Isolated, because Arabic or Hebrew text beside it would reorder its letters and digits.
    <bdi
      dir="ltr"
      title="A character that does not show"
      className="rounded-sm bg-amber-wash font-mono text-[0.9em] text-amber"
    >
      {text}
    </bdi>
  )
}

function Mark({ children }: { children: string | undefined }) {
  return <span className="text-soft select-none">{children}</span>
}

/** Warnings about the letters of these texts, such as lookalikes. */
export function LetterWarnings({ texts }: { texts: readonly (string | null)[] }) {
  const notes = [...new Set(texts.flatMap((text) => (text === null ? [] : lookalikes(text))))]
  if (notes.length === 0) return null
  return (
    <div role="note" className="mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm text-amber">
      <p className="font-medium">! Letters that look like others</p>
      <ul>
        {notes.slice(0, WARNINGS_SHOWN).map((note) => (
          <li key={note} className="[overflow-wrap:anywhere]">
            {note}
          </li>
        ))}
        {notes.length > WARNINGS_SHOWN && <li>and {notes.length - WARNINGS_SHOWN} more words</li>}
      </ul>
    </div>
  )
}

const WARNINGS_SHOWN = 5

/** Text with the matches of a search marked. */
export function Marked({ parts }: { parts: readonly SnippetPart[] }) {
  return parts.map(({ text, isHit }, at) =>
    isHit ? (
      <mark key={at} className="rounded-sm bg-amber-wash font-medium text-amber">
        {text}
      </mark>
    ) : (
      <span key={at}>{text}</span>
    ),
  )
}
