import type { SnippetPart } from '@tacho/contract/runs/search.ts'
import type { SearchField } from '@tacho/contract/runs/search-filters.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { EventRowRead, TimelinePlace, StoredEvent } from '../record/events.ts'
import type { Page, PageAfter } from '../engine/page.ts'
import type { RunRow } from './runs.ts'

export interface SearchSettingsRow {
  state: 'ON' | 'REMOVING'
  changedAt: number
  /** Runs that started before this time are not yet marked for indexing. Null: all are marked. */
  olderBefore: number | null
  /** The last marked run among those that started at `olderBefore`. */
  olderId: string | null
  indexedEvents: number
  waitingRuns: number
  waitingSince: number | null
  error: string | null
}

export interface EventSearch extends PageAfter<SearchPlace> {
  clauses: SearchClause[]
  from: number
  to: number
}

export interface SearchPlace {
  time: number
  run: number
  tie: number
}

export interface SearchHitRow {
  run: RunRow
  event: EventRowRead
  snippet: SnippetPart[]
  place: SearchPlace
}

export type SearchRead = Page<SearchHitRow> & { lookedTo?: SearchPlace }

export interface RunSearch extends PageAfter<TimelinePlace> {
  text: string
  /** A page ends after this many events or bytes of payloads. `piece`: what one statement reads. */
  bounds: { events: number; bytes: number; piece: { limit: number; pageBytes: number } }
}

/** `lookedTo`: where to continue; null: the search has reached the end. */
export interface RunSearchRead {
  rows: { event: EventRowRead; snippet: SnippetPart[] }[]
  examined: number
  lookedTo: TimelinePlace | null
}

export interface UnindexedRun {
  run: number
  id: string
  /** Marks of the run when it was read. If events were added since, the run stays marked. */
  marks: number
  indexedSeq: number
  isComplete: boolean
  events: { seq: number; time: number; words: number[] }[]
}

/**
 * Reads queries and events in the same way on every engine, so all find the same events. A word is a sequence of
 * letters and digits, in lower case and without accents. In scripts without spaces, each character is a word.
 */

/** Words next to each other in `field`; null: in the label or in a text of the payload. */
export interface SearchClause {
  field: SearchField | null
  words: string[]
  isExcluded: boolean
}

type SearchedEvent = Pick<StoredEvent, 'eventType' | 'label' | 'agentId' | 'agentName' | 'payload'>

interface Word {
  word: string
  start: number
  end: number
}

const WORD_CHARS = 100
const SEQUENCES = /[\p{L}\p{N}\p{M}]+/gu
const ALONE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const ASCII = /^[\0-\x7f]*$/

export function wordsOf(text: string): Word[] {
  const words: Word[] = []
  for (const { 0: sequence, index } of text.matchAll(SEQUENCES)) {
    if (ASCII.test(sequence)) addWord(words, sequence.toLowerCase(), index, index + sequence.length)
    else addSequence(words, sequence, index)
  }
  return words
}

function addSequence(words: Word[], sequence: string, start: number): void {
  let from = 0
  let at = 0
  const end = (to: number) => {
    if (to > from) addWord(words, fold(sequence.slice(from, to)), start + from, start + to)
  }
  for (const character of ALONE.test(sequence) ? sequence : []) {
    const next = at + character.length
    if (ALONE.test(character)) {
      end(at)
      addWord(words, fold(character), start + at, start + next)
      from = next
    }
    at = next
  }
  end(sequence.length)
}

function addWord(words: Word[], word: string, start: number, end: number): void {
  if (word !== '') words.push({ word: word.slice(0, WORD_CHARS), start, end })
}

const fold = (text: string): string => text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase()

export function payloadTexts(payload: string): string[] {
  const texts: string[] = []
  for (const [text] of payload.matchAll(VALUES)) {
    if (!text.startsWith('"')) texts.push(text)
    else if (text.endsWith('"')) texts.push(text.includes('\\') ? (JSON.parse(text) as string) : text.slice(1, -1))
  }
  return texts
}

/** A string, with the colon if it is a key, or a number. */
const VALUES = /"[^"\\]*(?:\\.[^"\\]*)*"(?:\s*:)?|-?\d[\d.eE+-]*/g

function fieldTexts(event: SearchedEvent, field: SearchField | null): string[] {
  switch (field) {
    case null:
      return [event.label, ...payloadTexts(event.payload)]
    case 'type':
      return [event.eventType]
    case 'label':
      return [event.label]
    case 'agent':
      return event.agentId === null ? [event.agentName] : [event.agentName, event.agentId]
    case 'tool':
      return payloadField(event.payload, 'toolName')
    case 'model':
      return payloadField(event.payload, 'model')
  }
}

function payloadField(payload: string, name: 'toolName' | 'model'): string[] {
  if (!payload.includes(`"${name}"`)) return []
  const { [name]: value } = JSON.parse(payload) as Record<string, unknown>
  return typeof value === 'string' ? [value] : []
}

const FIELDS = [null, 'tool', 'type', 'agent', 'model', 'label'] as const

/** A space can separate field and word, because no word contains one. */
const term = (field: SearchField | null, word: string): string => (field === null ? word : `${field} ${word}`)

export function termsOf(event: SearchedEvent): Set<string> {
  const terms = new Set<string>()
  for (const field of FIELDS.toReversed()) {
    for (const text of fieldTexts(event, field)) {
      for (const { word } of wordsOf(text)) {
        if (terms.size >= LIMITS.searchedWords) return terms
        terms.add(term(field, word))
      }
    }
  }
  return terms
}

export function requiredTerms(clauses: readonly SearchClause[]): string[] {
  const required = clauses.filter(({ isExcluded }) => !isExcluded)
  return [...new Set(required.flatMap(({ field, words }) => words.map((word) => term(field, word))))]
}

/** A hash of 32 bits. `seed` makes the words of each tenant different. */
export function hashOf(text: string, seed = 0x811c9dc5): number {
  let hash = seed
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) | 0
}

export function matchEvent(event: SearchedEvent, clauses: readonly SearchClause[]): SnippetPart[] | null {
  const texts = new Map<SearchField | null, string[]>()
  const words = new Map<string, Word[]>()
  const wordsIn = (text: string): Word[] => {
    let known = words.get(text)
    if (known === undefined) words.set(text, (known = wordsOf(text)))
    return known
  }
  for (const { field, words: sought, isExcluded } of clauses) {
    let ofField = texts.get(field)
    if (ofField === undefined) texts.set(field, (ofField = fieldTexts(event, field)))
    if (ofField.some((text) => placeOf(wordsIn(text), sought) !== -1) === isExcluded) return null
  }
  const required = clauses.filter(({ isExcluded }) => !isExcluded)
  const shown = required.filter(({ field }) => field === null)
  const { field } = (shown[0] ?? required[0])!
  const sought = (shown.length > 0 ? shown : required.slice(0, 1)).map((clause) => clause.words)
  const textsOfField = texts.get(field) ?? []
  const hasHit = (text: string) => sought.some((one) => placeOf(wordsIn(text), one) !== -1)
  const nearest = textsOfField.find(hasHit) ?? ''
  // A label that was cut is the beginning of a text of the payload. Take that text, because it continues after the hit.
  const whole = nearest.endsWith(MORE) ? textsOfField.find((text) => text !== nearest && hasHit(text)) : undefined
  const first = whole ?? nearest
  const near = wordsOfSnippet(wordsIn(first), sought)
  const hits = sought.flatMap((one) => hitsIn(near, one))
  return snippetOf(
    first,
    hits.toSorted((a, b) => a.start - b.start || b.end - a.end),
  )
}

export const soughtText = (text: string): RegExp => new RegExp(RegExp.escape(text), 'giu')

export function containedIn({ eventType, label, payload }: SearchedText, sought: RegExp): SnippetPart[] | null {
  // A payload without escapes contains its texts literally, so a search in it is enough.
  const isAsItIs = !payload.includes('\\')
  const texts = isAsItIs && !isIn(payload, sought) ? [label, eventType] : [label, ...payloadTexts(payload), eventType]
  const first = texts.find((text) => isIn(text, sought))
  return first === undefined ? null : snippetOf(first, rangesIn(first, sought))
}

type SearchedText = Pick<SearchedEvent, 'eventType' | 'label' | 'payload'>

const isIn = (text: string, sought: RegExp): boolean => text.search(sought) !== -1

function rangesIn(text: string, sought: RegExp): Range[] {
  const ranges: Range[] = []
  for (const { 0: hit, index } of text.matchAll(sought)) {
    const first = ranges[0]?.start ?? index
    if (index > first + SNIPPET_CHARS) break
    ranges.push({ start: index, end: index + hit.length })
  }
  return ranges
}

/** Keep only words that a snippet can show, because a text may have a hundred thousand hits. */
function wordsOfSnippet(words: readonly Word[], sought: readonly string[][]): readonly Word[] {
  const places = sought.map((one) => placeOf(words, one)).filter((place) => place !== -1)
  const from = Math.min(...places)
  const end = (words[from]?.start ?? 0) + SNIPPET_CHARS
  const to = words.findIndex(({ start }, index) => index > from && start >= end)
  // The last hit that begins in the snippet may end after it.
  return words.slice(from, to === -1 ? undefined : to + LIMITS.searchQueryWords)
}

type Range = Pick<Word, 'start' | 'end'>

function placeOf(words: readonly Word[], sought: readonly string[], from = 0): number {
  for (let at = from; at + sought.length <= words.length; at++) {
    if (sought.every((word, index) => words[at + index]?.word === word)) return at
  }
  return -1
}

function hitsIn(words: readonly Word[], sought: readonly string[]): Range[] {
  const hits: Range[] = []
  for (let at = placeOf(words, sought); at !== -1; at = placeOf(words, sought, at + 1)) {
    hits.push({ start: words[at]!.start, end: words[at + sought.length - 1]!.end })
  }
  return hits
}

const CHARS_BEFORE = 60
const SNIPPET_CHARS = 240
const MORE = '…'

function snippetOf(text: string, hits: readonly Range[]): SnippetPart[] {
  const first = hits[0]?.start ?? 0
  const from = first > CHARS_BEFORE + 1 ? wordStart(text, boundary(text, first - CHARS_BEFORE), first) : 0
  const to = boundary(text, Math.min(text.length, from + SNIPPET_CHARS))
  const parts: SnippetPart[] = []
  const add = (snippetText: string, isHit: boolean) => {
    if (snippetText !== '') parts.push({ text: snippetText.toWellFormed(), isHit })
  }
  let at = from
  add(from > 0 ? MORE : '', false)
  for (const { start, end } of hits) {
    if (start < at || start >= to) continue
    add(text.slice(at, start), false)
    at = Math.min(end, to)
    add(text.slice(start, at), true)
  }
  add(text.slice(at, to), false)
  add(to < text.length ? MORE : '', false)
  return parts
}

/** The first start of a word between `from` and the hit. A text without spaces starts at `from`. */
function wordStart(text: string, from: number, hit: number): number {
  const space = text.slice(from - 1, hit).search(/\s/)
  return space === -1 ? from : from + space
}

function boundary(text: string, at: number): number {
  const isLow = /[\uDC00-\uDFFF]/.test(text.charAt(at))
  return isLow && at > 0 ? at - 1 : at
}
