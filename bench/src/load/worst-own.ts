/** Worst bodies that a schema cannot describe: conditions, lines of an export, and messages to /mcp. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { POLICY_LIMITS } from '@tacho/policy/limits.ts'

export interface WorstRequest {
  /** The property that makes it a worst case. */
  kind: string
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Buffer
  /** Size of a chunk in bytes, if the body is sent in chunks. */
  chunkBytes?: number
  /** Number of pages to follow before this request. */
  pages?: number
}

/** The members that replace those of a valid body, by kind of worst case. */
export function ownMembers(name: string, bytes: number): Record<string, object> {
  if (name === 'importEnvironment') return lines(bytes)
  if (name === 'createPolicy' || name === 'createPolicyVersion' || name === 'createSimulation') return CONDITIONS
  if (name === 'mcp') return MESSAGES
  return {}
}

const most = (piece: string, by: string, chars: number): string =>
  Array.from({ length: Math.floor(chars / (piece.length + by.length)) }, () => piece).join(by)
const chars = POLICY_LIMITS.sourceChars - 10
const folded = `tool.name.matches("(?i)[a-z]{20}${'[\\\\x{41}-\\\\x{24f}]'.repeat(20)}")`

const CONDITIONS = {
  'condition with most nodes': { condition: most('1==1', '||', 1_100) },
  'condition with most patterns': { condition: most(folded, '||', chars) },
  'condition with widest patterns': { condition: most('tool.name.matches("(?i)[\\\\x{0}-\\\\x{ffff}]")', '||', chars) },
  'condition with most faults': { condition: most('a', '+', 1_800) },
  'deepest condition': { condition: `${'('.repeat(200)}true${')'.repeat(200)}` },
  'condition in long lists': { condition: `1 in [${most('1', ',', 1_800)}]` },
}

const HEAD = JSON.stringify({ type: 'export', version: 1, workspace: 'w', environment: 'e', filter: {} })

function lines(bytes: number): Record<string, object> {
  const room = bytes - HEAD.length * 2 - 200
  const event = (payload: string) => `{"type":"event","payload":${payload}}`
  const agents = Array.from({ length: LIMITS.importedLines - 1 }, (_, n) =>
    JSON.stringify({
      type: 'agent',
      id: `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`,
      name: 'x',
      nameTime: 1,
    }),
  )
  const dense = Math.floor(room / 3)
  const texts: Record<string, string[]> = {
    'line with most values': [event(`[${'{},'.repeat(dense - 10)}{}]`)],
    'deepest line': [event('['.repeat(room / 2 - 50) + ']'.repeat(room / 2 - 50))],
    'line with most names': [
      `{${Array.from({ length: Math.floor(room / 14) }, (_, n) => `"${n.toString(36)}":0`).join()}}`,
    ],
    'line with most escapes': [event(`"${'\\u8a9e'.repeat(Math.floor(room / 7) - 10)}"`)],
    'most lines': agents,
  }
  return Object.fromEntries(Object.entries(texts).map(([kind, own]) => [kind, { lines: [HEAD, ...own] }]))
}

const call = (name: string, given: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
})
const MESSAGES = {
  'list of tools': { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  'call with most values': call('list_runs', { x: Array.from({ length: 80_000 }, () => ({})) }),
  'call with a long text': call('list_runs', { agent: 'x'.repeat(200_000) }),
}
