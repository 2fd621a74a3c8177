import { useMemo } from 'react'
import { ShownText } from '../../web/text/shown-text.tsx'
import { COMPARED_CHARS, wordsOf, type BothWords, type Word } from './words.ts'

export function useWords(a: string | null, b: string | null): BothWords | null {
  return useMemo(() => (a === null || b === null || a === b ? null : wordsOf(a, b)), [a, b])
}

interface BothWordsProps {
  text: string
  words: readonly Word[] | undefined
  /** Of the first run or of the second. */
  side: 'a' | 'b'
}

const OWN = { a: 'rounded-xs bg-red-wash text-red', b: 'rounded-xs bg-green-wash text-green' }

/** A text whose own words stand out, by colour and by a line under them. */
export function Words({ text, words, side }: BothWordsProps) {
  if (!words) return <ShownText text={text} lineBreaks />
  const rest = text.slice(COMPARED_CHARS)
  return (
    <>
      {words.map((word, index) =>
        word.isOwn ? (
          <mark key={index} className={`${OWN[side]} underline decoration-1 underline-offset-2`}>
            <ShownText text={word.text} lineBreaks />
          </mark>
        ) : (
          <ShownText key={index} text={word.text} lineBreaks />
        ),
      )}
      <ShownText text={rest} lineBreaks />
    </>
  )
}
