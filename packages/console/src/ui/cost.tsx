import { costNote, costText, type Costs } from './costs.ts'

export function Cost({ of }: { of: Costs }) {
  const note = costNote(of)
  if (of.isAbsent) return <span className="font-normal text-soft">{costText(of)}</span>
  if (note === '') return costText(of)
  return <span title={note}>{costText(of)}</span>
}
