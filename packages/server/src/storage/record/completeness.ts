/**
 * A recorder is one SDK instance in one run. It numbers its events from 1. The counts of all recorders are one text in
 * the run's row, so events cost no row.
 */

export interface Numbering {
  /** RECORDER_CHARS of the recorder's id, the number in base 36, and a dot if it is the last number. */
  number: string | null
  /** JSON of `Drop[]`: the recorder's totals so far. */
  drops: string | null
}

export interface Recorder {
  id: string
  clientId: string
  highest: number
  arrived: number
  rejected: number
  isDone: boolean
  dropped: Drop[]
}

export interface Drop {
  reason: string
  count: number
  lastAt: number
}

const RECORDER_CHARS = 5
/** Events of recorders beyond this number count as not numbered. */
export const MOST_RECORDERS = 50
export const MOST_REASONS = 8

/** Changes `list`. Returns whether a recorder was added. */
export function addArrived(
  list: Recorder[],
  event: Numbering & { clientId: string },
  ownText: (text: string) => string,
): boolean {
  const { number, drops } = event
  if (number === null) return false
  const length = list.length
  const recorder = recorderOf(list, number, event.clientId, ownText)
  if (recorder === null) return false
  recorder.arrived++
  noteNumber(recorder, number)
  if (drops !== null) addDrops(recorder, drops, ownText)
  return list.length > length
}

export function addRejected(
  list: Recorder[],
  number: string,
  clientId: string,
  ownText: (text: string) => string,
): void {
  const recorder = recorderOf(list, number, clientId, ownText)
  if (recorder === null) return
  recorder.rejected++
  noteNumber(recorder, number)
}

/** A rejected or already stored event can still report drops. Returns whether it did. */
export function addRepeated(
  list: Recorder[],
  { number, drops }: Numbering,
  ownText: (text: string) => string,
): boolean {
  const recorder = list.find(({ id }) => number?.startsWith(id))
  return recorder !== undefined && drops !== null && addDrops(recorder, drops, ownText)
}

function recorderOf(
  list: Recorder[],
  number: string,
  clientId: string,
  ownText: (text: string) => string,
): Recorder | null {
  for (const recorder of list) if (number.startsWith(recorder.id)) return recorder
  if (list.length >= MOST_RECORDERS) return null
  const none = { highest: 0, arrived: 0, rejected: 0, isDone: false, dropped: [] }
  const added = { id: ownText(number.slice(0, RECORDER_CHARS)), clientId: ownText(clientId), ...none }
  list.push(added)
  return added
}

function noteNumber(recorder: Recorder, number: string): void {
  let value = 0
  let at = RECORDER_CHARS
  // Parsed by hand: a third of the time of parseInt, and it runs for each event.
  for (; at < number.length && number.charCodeAt(at) !== DOT; at++) {
    const code = number.charCodeAt(at)
    value = value * 36 + (code < LETTERS ? code - ZERO : code - LETTERS + 10)
  }
  if (value < recorder.highest) return
  recorder.highest = value
  recorder.isDone = at < number.length
}

const [DOT, ZERO, LETTERS] = [46, 48, 97]

/** Counts are totals, so a repeated or late report changes nothing. */
function addDrops({ dropped }: Recorder, drops: string, ownText: (text: string) => string): boolean {
  let isNew = false
  for (const { reason, count, lastAt } of JSON.parse(drops) as Drop[]) {
    const known = dropped.find((drop) => drop.reason === reason)
    if (known !== undefined && known.count >= count) continue
    if (known !== undefined) Object.assign(known, { count, lastAt })
    else if (dropped.length < MOST_REASONS) dropped.push({ reason: ownText(reason), count, lastAt })
    else continue
    isNew = true
  }
  return isNew
}

export const droppedBy = ({ dropped }: Recorder): number => dropped.reduce((sum, { count }) => sum + count, 0)

/** An upper bound: if an answer was lost, a client may count an event as dropped that has arrived. */
export function recordedBy(recorder: Recorder): number {
  const { highest, arrived, rejected, isDone } = recorder
  return isDone ? highest : Math.max(highest, arrived + rejected + droppedBy(recorder))
}

export function hasGaps(list: readonly Recorder[]): boolean {
  return list.some((recorder) => recordedBy(recorder) > recorder.arrived)
}

export function recordersText(list: readonly Recorder[]): string | null {
  if (list.length === 0) return null
  return JSON.stringify(
    list.map(({ id, clientId, highest, arrived, rejected, isDone, dropped }) => [
      id,
      clientId,
      highest,
      arrived,
      rejected,
      isDone ? 1 : 0,
      ...dropped.flatMap(({ reason, count, lastAt }) => [reason, count, lastAt]),
    ]),
  )
}

type Row = [string, string, number, number, number, number, ...(string | number)[]]

export function readRecorders(text: string | null): Recorder[] {
  if (text === null) return []
  return (JSON.parse(text) as Row[]).map(([id, clientId, highest, arrived, rejected, isDone, ...drops]) => {
    const dropped: Drop[] = []
    for (let at = 0; at < drops.length; at += 3) {
      dropped.push({ reason: String(drops[at]), count: Number(drops[at + 1]), lastAt: Number(drops[at + 2]) })
    }
    return { id, clientId, highest, arrived, rejected, isDone: isDone === 1, dropped }
  })
}
