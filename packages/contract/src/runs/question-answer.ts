/**
 * The question and the answer of a run, from its events. In lists, pages and commands, the first question is the title
 * of a run. Source: docs/decisions/0106-issues-from-what-fails.md.
 */
import { shortenedText } from '../engine/shown-text.ts'
import { contentText, isObject, messagesAt, textAt, type Json } from '../record/payload-reader.ts'

export interface Said {
  /** Question and answer are one line each. */
  question: string | null
  answer: string | null
}

export const SAID_CHARS = 200
/** Only this much of a longer text is read. */
const READ_CHARS = 2_000
/** Stands for a text in metadata-only mode. */
const LEFT_OUT = '[left out]'

/** Null: neither a question nor an answer. */
export function saidIn(eventType: string, label: string, payload: Json): Said | null {
  const runLines = {
    question: lineOf(questionIn(eventType, payload)),
    answer: lineOf(answerIn(eventType, label, payload)),
  }
  return runLines.question === null && runLines.answer === null ? null : runLines
}

function questionIn(eventType: string, payload: Json): string {
  if (eventType === 'USER_INPUT') return textAt(payload, 'text') ?? contentText(payload['content'])
  if (eventType !== 'LLM_CALL' || !Array.isArray(payload['messages'])) return ''
  // A conversation sends its earlier questions again, so only the last one is new.
  for (const message of payload['messages'].toReversed() as unknown[]) {
    const text =
      isObject(message) && message['role'] === 'user' ? contentText(message['content'] ?? message['text']) : ''
    if (text !== '') return text
  }
  return ''
}

function answerIn(eventType: string, label: string, payload: Json): string {
  if (eventType === 'LLM_CALL') return messagesAt(payload, 'output').at(-1)?.text ?? ''
  // Hooks of coding agents record the last message of a turn in this way.
  return eventType === 'AGENT_STEP' && label === 'answer' ? (textAt(payload, 'text') ?? '') : ''
}

function lineOf(text: string): string | null {
  const line = text.slice(0, READ_CHARS).replaceAll(/\s+/g, ' ').trim()
  return line === '' || line === LEFT_OUT ? null : shortenedText(line, SAID_CHARS)
}
