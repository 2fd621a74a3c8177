/**
 * The case of the budget for policies on the past: 10 policies, and a run with 200 calls, each with 10 kB of output.
 */
import type { Policy } from '@tacho/policy/decide.ts'
import type { HistoryCall } from '@tacho/policy/history/run-history.ts'

export const CALLS = 200
export const OUTPUT_CHARS = 10_000
const NOTE_CHARS = 200

/** The conditions of docs/firewall.md, and some on the order of calls. All read the past. */
const CONDITIONS = {
  trifecta: '"external" in tool.labels && "untrusted" in run.labels && "private" in run.labels',
  account: 'tool.name == "pay" && !origin(tool.input.account).exists(o, o in ["user", "ours"])',
  reference:
    'tool.name == "pay" && "untrusted" in origin(tool.input.reference) && !("user" in origin(tool.input.reference))',
  again:
    'tool.name == "pay" && run.calls.exists(c, c.tool == "pay" && c.ok && c.input.account == tool.input.account && c.input.amount == tool.input.amount)',
  recipients:
    'tool.name == "send_email" && tool.input.recipients.exists(r, !("user" in origin(r)) && !("ours" in origin(r)) && !r.endsWith("@example.com"))',
  subject: 'tool.name == "send_email" && "untrusted" in origin(tool.input.subject)',
  unverified:
    'tool.name == "refund" && !run.calls.exists(c, c.tool == "verify" && c.ok && c.input.customer == tool.input.customer)',
  deletion:
    '"destructive" in tool.labels && "untrusted" in run.labels && !["delete", "remove"].exists(w, "user" in origin(w))',
  failures: 'run.calls.filter(c, !c.ok).size() > 40',
  refused: 'run.calls.exists(c, c.decision == "BLOCK" && "external" in c.labels)',
}

export const PAST_POLICIES: readonly Policy[] = Object.entries(CONDITIONS).map(([policyId, condition]) => {
  return { policyId, name: policyId, version: '1', condition, severity: 'HIGH', action: 'REQUIRE_APPROVAL' }
})

export interface NextCall {
  tool: string
  input: Record<string, unknown>
  labels: string[]
}

export interface PastCase {
  policies: readonly Policy[]
  said: string
  calls: HistoryCall[]
  /** Calls that are decided one after another. None contains a value of another. */
  next: NextCall[]
}

const WORDS_MAX = 4_000
const NEXT_MAX = 50

/** The same in every process, because both languages decide it. */
export function pastCase(count = CALLS): PastCase {
  const random = linear(20_261_130)
  const words = Array.from({ length: WORDS_MAX }, () => word(random))
  const text = (chars: number): string => {
    let written = ''
    while (written.length < chars) written += `${words[Math.floor(random() ** 2 * WORDS_MAX)]} `
    return written.slice(0, chars)
  }
  const calls = Array.from({ length: count }, (_, n): HistoryCall => {
    const [tool, labels, does] = [
      ['read_mail', ['untrusted'], []],
      ['get_customer', ['private', 'ours'], []],
      ['verify', ['ours'], []],
      ['pay', [], ['money', 'external']],
    ][n % 4] as [string, string[], string[]]
    const input = { customer: `c-${n}`, account: account(n), amount: n, note: text(NOTE_CHARS) }
    const output = `${text(OUTPUT_CHARS - 60)} ${account(n)} person${n}@firm${n}.example`
    return { tool, input, ok: n % 10 !== 0, decision: 'ALLOW', does, labels, output }
  })
  const next = Array.from({ length: NEXT_MAX }, (_, n): NextCall => {
    // Every second value is new; the others occur in an output.
    const known = n % 2 === 0 ? (n * 4) % count : count + n
    const people = [`person${known}@firm${known}.example`, `guest${n}@other${n}.example`, `ann${n}@example.com`]
    const fields = { customer: `c-${known}`, amount: known, note: text(NOTE_CHARS) }
    return [
      {
        tool: 'pay',
        input: { ...fields, account: account(known), reference: text(20) },
        labels: ['money', 'external'],
      },
      { tool: 'send_email', input: { ...fields, recipients: people, subject: text(30) }, labels: ['external'] },
      { tool: 'refund', input: { ...fields, order: `o-${n}` }, labels: ['money'] },
      { tool: 'delete_file', input: { ...fields, path: `/srv/data/${n}.csv` }, labels: ['destructive'] },
    ][Math.floor(n / 2) % 4] as NextCall
  })
  return { policies: PAST_POLICIES, said: `Pay ${account(0)} and delete the old files.`, calls, next }
}

const account = (n: number): string => `DE${String(89_370_400_440_000 + n * 7_919)}${String(n).padStart(6, '0')}`

function word(random: () => number): string {
  return Array.from({ length: 2 + Math.floor(random() * 3) }, () => {
    return `${'bdfgklmnprstvz'[Math.floor(random() * 14)]}${'aeiou'[Math.floor(random() * 5)]}`
  }).join('')
}

/** Numbers from 0 to 1, the same in every process. */
function linear(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
