/**
 * Title and last answer of a run, in its row for lists of runs. The title is the first question, or else the label of
 * the first step, whatever the order of arrival. Both are content: they are removed with the payloads.
 */
import type { Said } from '@tacho/contract/runs/question-answer.ts'
import type { NewEvent } from './events.ts'

interface Line {
  time: number
  eventId: string
  text: string
}

export interface RunSaid {
  title: Line
  isAsked: boolean
  answer: Line | null
}

/** Returns `known` if nothing changes. */
export function keptSaid(known: RunSaid | null, { said, label, time, eventId }: SayingEvent): RunSaid {
  const line = (text: string): Line => ({ time, eventId, text })
  const { question = null, answer = null } = said ?? {}
  if (known === null) {
    return { title: line(question ?? label), isAsked: question !== null, answer: answer === null ? null : line(answer) }
  }
  const at = { time, eventId }
  const isTitle = known.isAsked
    ? question !== null && isBefore(at, known.title)
    : question !== null || isBefore(at, known.title)
  const isAnswer = answer !== null && (known.answer === null || isBefore(known.answer, at))
  if (!isTitle && !isAnswer) return known
  return {
    title: isTitle ? line(question ?? label) : known.title,
    isAsked: known.isAsked || question !== null,
    answer: isAnswer ? line(answer) : known.answer,
  }
}

type SayingEvent = Pick<NewEvent, 'label' | 'time' | 'eventId'> & { said: Said | null }
type Place = Pick<Line, 'time' | 'eventId'>

const isBefore = (one: Place, other: Place): boolean =>
  one.time < other.time || (one.time === other.time && one.eventId < other.eventId)

export function saidChars({ title, answer }: RunSaid): number {
  return [title, answer].reduce((sum, line) => sum + (line === null ? 0 : line.text.length + line.eventId.length), 0)
}

export function saidText(said: RunSaid | null): string | null {
  if (said === null) return null
  const { title, isAsked, answer } = said
  const row: Row = [isAsked ? 1 : 0, rowOf(title)]
  return JSON.stringify(answer === null ? row : [...row, rowOf(answer)])
}

export function readSaid(text: string | null): RunSaid | null {
  if (text === null) return null
  const [isAsked, title, answer] = JSON.parse(text) as Row
  return { title: lineOf(title), isAsked: isAsked === 1, answer: answer === undefined ? null : lineOf(answer) }
}

type LineRow = [time: number, eventId: string, text: string]
type Row = [isAsked: 0 | 1, title: LineRow, answer?: LineRow]

const rowOf = ({ time, eventId, text }: Line): LineRow => [time, eventId, text]
const lineOf = ([time, eventId, text]: LineRow): Line => ({ time, eventId, text })
