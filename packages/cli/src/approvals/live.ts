/** Runs the screen of `tacho approvals watch` on a terminal: keys in, lines out, decisions to the server. */
import { emitKeypressEvents } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApprovalDetail, OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { Refused, type OperatorClient } from '../engine/operator-client.ts'
import { approvalChanges } from './watch.ts'
import {
  atTime,
  EMPTY_SCREEN,
  pressed,
  screenLines,
  withApproval,
  type Act,
  type Key,
  type Screen,
  withCards,
  withoutApproval,
} from './screen.ts'

export interface Terminal {
  input: NodeJS.ReadableStream & { setRawMode?: (isRaw: boolean) => unknown }
  output: NodeJS.WritableStream & { columns?: number; rows?: number }
}

const TICK_MS = 1_000
/** Read the list at this interval: a client that stops waiting causes no message in the stream. */
const CARDS_MS = 3_000
const CARDS = 100
const FRESH_MS = 5_000
const INPUT_LOOKS = 8
/** Longest wait for the server's reply. It is short because the person looks at the screen. */
const ANSWER_MS = 8_000
const ASK_AGAIN_MS = 1_000
const INPUT_PAUSE_MS = 250
const SIZE = { columns: 80, rows: 24 }
/** Switch to the terminal's alternate screen without a cursor, and back. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const CLEAR_LINE = '\u001b[K'
const CLEAR_BELOW = '\u001b[J'

/** Runs until the person quits. Resolves to whether they quit with Ctrl-C. */
export async function runScreen(
  client: OperatorClient,
  environmentId: string,
  { input, output }: Terminal,
): Promise<boolean> {
  let screen: Screen = EMPTY_SCREEN
  const leaving = new AbortController()
  const { promise: left, resolve: leave } = Promise.withResolvers<boolean>()
  const reading = new Set<string>()

  function draw(): void {
    const { columns = SIZE.columns, rows = SIZE.rows } = output
    const lines = screenLines(screen, { width: columns, height: rows }, Date.now())
    output.write(HOME + lines.map((line) => line + CLEAR_LINE).join('\r\n') + CLEAR_BELOW)
  }

  function show(next: Screen): void {
    screen = next
    const { selected } = screen
    if (selected !== null && !screen.details.has(selected) && !reading.has(selected)) void readInput(selected)
    draw()
  }

  async function readInput(id: string): Promise<void> {
    reading.add(id)
    try {
      const detail = await detailOf(client, environmentId, id)
      if (screen.pending.has(id)) show({ ...screen, details: new Map(screen.details).set(id, detail) })
    } catch (error) {
      if (error instanceof Refused) show({ ...screen, notice: error.message })
      else leaving.abort(error)
    } finally {
      reading.delete(id)
    }
  }

  async function carryOut(act: Act & { kind: 'decide' }): Promise<void> {
    try {
      // Block other keys while a decision is under way.
      show({ ...screen, notice: 'Deciding…', steadyAt: Number.POSITIVE_INFINITY })
      const { notice, decided } = await decide(client, environmentId, act)
      const next = decided.reduce((so, approval) => withApproval(so, approval, Date.now()), screen)
      // Keys decide again at once: the person expects the selection to move.
      show({ ...next, notice, steadyAt: 0 })
    } catch (error) {
      if (!(error instanceof Refused)) return leaving.abort(error)
      if (!isLost(error)) {
        // Read the input again: the server may have refused because it has changed.
        const details = new Map([...screen.details].filter(([id]) => id !== act.approval.id))
        return show({ ...screen, details, notice: error.message, steadyAt: 0 })
      }
      await askWhatIsTrue(act.approval)
    }
  }

  /** Blocks all keys until the service answers, because the decision may have been stored. */
  async function askWhatIsTrue({ id, toolName }: OperatorApproval): Promise<void> {
    show({ ...screen, notice: 'No answer: it is not known whether your decision was saved. Asking the service…' })
    while (!leaving.signal.aborted) {
      try {
        const options = { timeoutMs: ANSWER_MS, signal: leaving.signal }
        const approval = await client.readApproval({ params: { environmentId, approvalId: id } }, options)
        const shownLine =
          approval.status === 'PENDING' ? 'still waits: your decision was not saved' : `is ${approval.status}`
        return show({ ...withApproval(screen, approval, Date.now()), notice: `${toolName} ${shownLine}.`, steadyAt: 0 })
      } catch (error) {
        if (!(error instanceof Refused)) return leaving.abort(error)
        if (!isLost(error)) return show({ ...screen, notice: error.message, steadyAt: 0 })
        await sleep(ASK_AGAIN_MS)
      }
    }
  }

  function onKey(_text: string | undefined, key: Key): void {
    const { screen: next, act } = pressed(screen, key, Date.now())
    show(next)
    if (act?.kind === 'quit') leave(key.ctrl === true)
    else if (act?.kind === 'decide') void carryOut(act)
  }

  async function follow(): Promise<void> {
    const tell = (notice: string) => show({ ...screen, notice })
    for await (const approval of approvalChanges(client, environmentId, leaving.signal, tell)) {
      if (approval.status === 'ERASED') show(withoutApproval(screen, approval.id, Date.now()))
      else show(withApproval(screen, approval, Date.now()))
    }
  }

  async function readCards(): Promise<void> {
    while (!leaving.signal.aborted) {
      await sleep(CARDS_MS, undefined, { signal: leaving.signal }).catch(() => undefined)
      if (screen.pending.size === 0 || leaving.signal.aborted) continue
      const query = { status: 'PENDING', limit: CARDS } as const
      // Ignore the failure: the next attempt follows, and the stream reports what is wrong.
      const page = await client.listApprovals({ params: { environmentId }, query }).catch(() => null)
      if (page !== null) show(withCards(screen, page.items))
    }
  }

  const failed = new Promise<never>((_, reject) => {
    leaving.signal.addEventListener('abort', () => reject(leaving.signal.reason as Error), { once: true })
  })
  failed.catch(() => undefined)
  const ticks = setInterval(() => show(atTime(screen, Date.now())), TICK_MS)
  emitKeypressEvents(input)
  input.on('keypress', onKey)
  input.setRawMode?.(true)
  input.resume()
  output.on('resize', draw)
  output.write(ENTER)
  draw()
  try {
    void readCards()
    return await Promise.race([left, follow().then(() => false), failed])
  } finally {
    leaving.abort()
    clearInterval(ticks)
    input.off('keypress', onKey)
    output.off('resize', draw)
    input.setRawMode?.(false)
    input.pause()
    output.write(LEAVE)
  }
}

/** Whether the decision may have been stored although its reply was lost. */
const isLost = ({ result }: Refused): boolean =>
  result.reason !== 'no_address' && (result.reason !== 'refused' || result.status >= 500)

/** A client records the input after its request, so this waits a moment for the input. */
async function detailOf(client: OperatorClient, environmentId: string, approvalId: string): Promise<ApprovalDetail> {
  for (let looks = 1; ; looks++) {
    const detail = await client.readApproval({ params: { environmentId, approvalId } })
    const isFresh = Date.now() - Date.parse(detail.createdAt) < FRESH_MS
    if (detail.inputPreview !== null || detail.runId === null || !isFresh || looks === INPUT_LOOKS) return detail
    await sleep(INPUT_PAUSE_MS)
  }
}

/** Decides one request, or all waiting ones with its tool and input. */
async function decide(
  client: OperatorClient,
  environmentId: string,
  act: Act & { kind: 'decide' },
): Promise<{ notice: string; decided: OperatorApproval[] }> {
  const { decision, reason, approval, isGroup, confirmMismatch, seenInput } = act
  const params = { environmentId }
  const body = { decision, ...(reason === '' ? {} : { reason }), ...(confirmMismatch && { confirmMismatch }) }
  const word = decision.toLowerCase()
  if (!isGroup) {
    const seen = seenInput !== undefined && { seenInput }
    const call = { params: { ...params, approvalId: approval.id }, body: { ...body, ...seen } }
    const one = await client.decideApproval(call, { timeoutMs: ANSWER_MS })
    return { notice: `${approval.toolName} was ${word}.`, decided: [one] }
  }
  const { toolName, inputHash } = approval
  const decided: OperatorApproval[] = []
  for (let more = true; more;) {
    const seen = seenInput !== undefined && { seenInputs: [{ id: approval.id, eventId: seenInput }] }
    const call = { params, body: { ...body, toolName, inputHash, ...seen } }
    const reply = await client.decideApprovals(call, { timeoutMs: ANSWER_MS })
    decided.push(...reply.items.flatMap((item) => (item.outcome === 'decided' && item.approval ? [item.approval] : [])))
    more = reply.more
  }
  return { notice: `${decided.length} of ${toolName} were ${word}.`, decided }
}
