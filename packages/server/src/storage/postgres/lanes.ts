/**
 * Which waiting parts of batches share a commit. The runs of an environment are divided into lanes by a hash of their id;
 * a transaction holds the lanes of all runs it writes. So transactions of one node never wait for each other's rows; a
 * batch that comes alone is one transaction, and under load there are several, each with what has gathered in its lanes.
 * Different environments never share a commit: on Citus they may lie on different machines.
 *
 *   lane: free --taken, alone or with others--> held --its transaction ended--> free
 */

/** Of each environment on a node. As many as one tenant may use connections for writing at once. */
export const LANES = 4
/** Enough that what a commit costs weighs little, few enough that those behind do not wait long. */
const EVENTS_PER_COMMIT = 1_000
const BYTES_PER_COMMIT = 8 * 1_048_576
/** Fewer are not worth a transaction of their own. */
const EVENTS_WORTH_A_COMMIT = 200

interface Weighed {
  events: { length: number }
  bytes: number
}

export interface Taken<Part> {
  environmentId: string
  lanes: number[]
  parts: Part[]
}

export interface LanesOptions<Part> {
  /** Transactions at once, over all environments. */
  transactions: number
  /** Never rejects. */
  run: (taken: Taken<Part>) => Promise<void>
}

interface Lane<Part> {
  held: boolean
  waiting: Part[]
}

/** The same on every node, so that nodes that write to the same runs meet in one lane and not in all. */
export function laneOf(runId: string): number {
  let sum = 0
  for (let index = 0; index < runId.length; index++) sum = (Math.imul(sum, 31) + runId.charCodeAt(index)) | 0
  return (sum >>> 0) % LANES
}

export function createLanes<Part extends Weighed>({ transactions, run }: LanesOptions<Part>) {
  const environments = new Map<string, Lane<Part>[]>()
  let active = 0
  let isDue = false
  let onIdle: (() => void) | null = null

  function add(environmentId: string, lane: number, part: Part): void {
    let lanes = environments.get(environmentId)
    if (lanes === undefined) {
      lanes = Array.from({ length: LANES }, () => ({ held: false, waiting: [] }))
      environments.set(environmentId, lanes)
    }
    lanes[lane]?.waiting.push(part)
    // After the requests that have arrived with this one, so that they share a commit.
    if (!isDue) setImmediate(start)
    isDue = true
  }

  function start(): void {
    isDue = false
    // Environments take turns: one that is served goes to the end, and so is looked at again.
    for (const [environmentId, lanes] of environments) {
      if (active >= transactions) return
      const taken = take(lanes, transactions - active)
      if (taken === null) continue
      environments.delete(environmentId)
      environments.set(environmentId, lanes)
      void perform(environmentId, lanes, taken)
    }
  }

  async function perform(environmentId: string, lanes: Lane<Part>[], taken: Omit<Taken<Part>, 'environmentId'>) {
    active++
    await run({ environmentId, ...taken })
    active--
    for (const lane of taken.lanes) lanes[lane]!.held = false
    if (lanes.every(({ held, waiting }) => !held && waiting.length === 0)) environments.delete(environmentId)
    if (environments.size === 0) onIdle?.()
    start()
  }

  return {
    add,
    /** Resolves when nothing waits or is written any more. */
    async idle(): Promise<void> {
      if (environments.size > 0) await new Promise<void>((resolve) => (onIdle = resolve))
    },
  }
}

/** Holds free lanes with something in them until their parts are worth a transaction; null where there are none. */
function take<Part extends Weighed>(lanes: Lane<Part>[], connections: number) {
  const free = lanes
    .map((lane, number) => ({ ...lane, lane, number }))
    .filter(({ held, waiting }) => !held && waiting.length > 0)
  if (free.length === 0) return null
  const total = sum(free.flatMap(({ waiting }) => waiting))
  const share = Math.max(EVENTS_WORTH_A_COMMIT, total.events / connections)
  const taken = { lanes: [] as number[], parts: [] as Part[] }
  let size = { events: 0, bytes: 0 }
  for (const { lane, number } of free) {
    if (size.events >= share || size.bytes >= BYTES_PER_COMMIT) break
    lane.held = true
    taken.lanes.push(number)
    const count = fitting(lane.waiting, size)
    taken.parts.push(...lane.waiting.splice(0, count))
    size = sum(taken.parts)
  }
  return taken
}

/** How many of the parts still fit; at least one where there is nothing yet. */
function fitting(waiting: Weighed[], size: { events: number; bytes: number }): number {
  let { events, bytes } = size
  const past = waiting.findIndex((part, index) => {
    events += part.events.length
    bytes += part.bytes
    return (index > 0 || size.events > 0) && (events > EVENTS_PER_COMMIT || bytes > BYTES_PER_COMMIT)
  })
  return past === -1 ? waiting.length : past
}

function sum(parts: Weighed[]) {
  return {
    events: parts.reduce((total, { events }) => total + events.length, 0),
    bytes: parts.reduce((total, { bytes }) => total + bytes, 0),
  }
}
