import { costNote, costText, type Costs } from './costs.ts'

export function Cost({ of }: { of: Costs }) {
  const note = costNote(of)
  const text = costText(of)
  if (note === '' && text !== 'unknown') return text
  return (
    <span title={note || undefined} className={text === 'unknown' ? 'font-normal text-soft' : undefined}>
      {text}
    </span>
  )
}
