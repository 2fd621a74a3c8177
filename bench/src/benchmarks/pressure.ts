/** The service under pressure from strangers and tenants: how its memory grows, and how long others wait. */
import { setTimeout as sleep } from 'node:timers/promises'
import { OPERATOR_PREFIX } from '@tacho/contract/web/operator-routes.ts'
import { startBareServer } from '../bare/http-server.ts'
import { startChild, type Child } from '../child.ts'
import type { Setting } from '../benchmark.ts'
import { onBoth } from '../engines/on-both.ts'
import type { Plan } from '../plan.ts'
import type { Attack, Attacked, Suffered } from '../load/attacks.ts'
import { startLoad } from '../load/start.ts'
import { below, row, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import type { Server } from '../server.ts'
import { whole } from '../text.ts'
import { watch } from '../watch.ts'
import { addPrompt, filled, type Ids } from './sample-ids.ts'

const BATCH = '/openapi/v1/events/batch'
const TRACES = '/openapi/v1/otlp/v1/traces'

interface Tried {
  attack: Exclude<Attacked, { kind: 'reads' }>
  /** The sender of the requests. Default: a client with an API key. */
  by?: 'stranger' | 'operator'
  flags?: readonly string[]
  /** Compare with a server of ../bare/http.ts that refuses the same requests. */
  beside?: 'refuse'
  /** Prepares the store. Returns the ids that replace `{name}` in the path. */
  prepare?: (server: Server, others: Others) => Promise<Ids>
}

/** Other processes, shared by all attacks. */
interface Others {
  attacker: Child<Attack, Suffered>
  load: ReturnType<typeof startLoad>
  plan: Plan
  /** Servers whose store is already filled: a quick run has one server for all attacks. */
  filled: WeakSet<Server>
}

const READ = { method: 'GET', body: 'none', requests: 1_300 } as const
const TO_MCP = { method: 'POST', path: '/mcp' } as const
/** Raises a token's rate limit, so that the fair turns limit it and not status 429. */
const ANY_RATE = ['--operator-rate-limit', '1000000']
const BEYOND_RATES = { by: 'operator', flags: ANY_RATE } as const

const ATTACKS: Record<string, Tried> = {
  'documents never read, pipelined': {
    attack: { kind: 'pipelined', ...READ, path: `${OPERATOR_PREFIX}/openapi.json`, connections: 8 },
    by: 'stranger',
    beside: 'refuse',
  },
  'scripts never read, pipelined': {
    attack: { kind: 'pipelined', ...READ, path: '/docs/assets/swagger-ui-bundle.js', connections: 16 },
    by: 'stranger',
    beside: 'refuse',
  },
  'refused bodies in one-byte chunks': {
    attack: { kind: 'chunked', path: BATCH, connections: 40, chunks: 400_000, type: 'application/json' },
    by: 'stranger',
    beside: 'refuse',
  },
  'a batch in one-byte chunks': {
    attack: { kind: 'chunked', path: BATCH, connections: 1, chunks: 1_000_000, type: 'application/json' },
  },
  'OTLP bodies in one-byte chunks': {
    attack: { kind: 'chunked', path: TRACES, connections: 4, chunks: 4_000_000, type: 'application/json' },
  },
  'OTLP bodies of empty lists': {
    attack: { kind: 'repeated', method: 'POST', path: TRACES, connections: 2, body: 'nested lists' },
  },
  '200 messages to /mcp at once': {
    attack: { kind: 'repeated', ...TO_MCP, connections: 200, body: 'mcp read' },
    ...BEYOND_RATES,
    prepare: history,
  },
  '200 simulations by /mcp at once': {
    attack: { kind: 'repeated', ...TO_MCP, connections: 200, body: 'mcp simulation' },
    ...BEYOND_RATES,
    prepare: history,
  },
  'messages to /mcp never read, pipelined': {
    attack: { kind: 'pipelined', ...TO_MCP, connections: 16, requests: 200, body: 'mcp read' },
    ...BEYOND_RATES,
    prepare: history,
  },
  'two Parquet exports at once': {
    attack: {
      kind: 'repeated',
      method: 'GET',
      path: `${OPERATOR_PREFIX}/environments/{environmentId}/export/parquet?table=events`,
      connections: 2,
      body: 'none',
    },
    by: 'operator',
    prepare: history,
  },
  'differences of long prompts': {
    attack: {
      kind: 'repeated',
      method: 'GET',
      path: `${OPERATOR_PREFIX}/workspaces/{workspaceId}/prompts/{promptId}/diff?from=1&to=2`,
      connections: 50,
      body: 'none',
    },
    by: 'operator',
    prepare: async (server) => ({ ...(await server.home()), ...(await addPrompt(server)) }),
  },
}

const HISTORY_EVENTS = 100_000

/** Minimum share of the attack's requests that must be answered. Otherwise the attack proves nothing. */
const ANSWERED = 0.95
const PEAK_MEGABYTES = 400
const HEALTH_MS = 100

export const pressure = onBoth({
  sqlite: ['pressure', 'Under attack'],
  postgres: ['postgres-pressure', 'Under attack, on PostgreSQL'],
  about:
    'Each attack runs on a new server, from one other process, with the requests that a stranger or one key can send. `/healthz` is requested \
every 20 ms, from before the attack until after it. A request that waits counts for as long as it waits. The time in which \
other programs ran instead of the server or of the asking process is subtracted, where the system counts it. \
Node parses everything that one read of a connection brings before it does anything else. So the rows beside `node:http` alone repeat the attack on a server that only refuses. Memory is what the process holds, at its peak. The bare limit is the same server before the attack.',
  async measure(setting, engine) {
    const { plan, place } = setting
    await using load = startLoad()
    await using attacker = startChild<Attack, Suffered>(new URL('../load/attacks.ts', import.meta.url))
    const others = { attacker, load, plan, filled: new WeakSet<Server>() }
    await using shared = plan.size === 'quick' ? await (await engine.createStore('store')).start(ANY_RATE) : null
    const rows: Row[] = []
    const table = ['| attack | how many answers, by status |', '|---|---|']
    for (const [name, tried] of Object.entries(ATTACKS)) {
      const answers: Suffered = {}
      const { found, alone } = await inTurn(setting, {
        async found(round) {
          if (shared) return await endure(shared, tried, setting, others, answers)
          const store = await engine.createStore(`attack-${rows.length}-${round}`)
          await using server = await store.start(tried.flags)
          return await endure(server, tried, setting, others, answers)
        },
        async alone(): Promise<{ p99?: number }> {
          if (!tried.beside) return {}
          await using server = await startBareServer(place, tried.beside)
          const { p99 } = await attackOn(server, tried.attack, others)
          return { p99 }
        },
      })
      assertAnswered(name, answers)
      table.push(`| ${name} | ${answersText(answers)} |`)
      rows.push(
        row(`${name}: memory at its peak`, 'MB', found.megabytes, found.calmMegabytes, below(PEAK_MEGABYTES)),
        row(`${name}: /healthz, p99`, 'ms', found.p99, found.calmP99, below(HEALTH_MS)),
      )
      if (alone.p99) rows.push(row(`${name}: /healthz, p99, beside \`node:http\` alone`, 'ms', found.p99, alone.p99))
    }
    return { rows, notes: [], table }
  },
})

async function endure(
  server: Server,
  { attack, by, prepare }: Tried,
  setting: Setting,
  others: Others,
  answers: Suffered,
) {
  const { plan } = setting
  const ids = (await prepare?.(server, others)) ?? {}
  const calm = await watch(server, () => sleep(plan.seconds * 1_000))
  const headers = by === 'stranger' ? {} : by === 'operator' ? server.operatorHeaders : server.headers
  const { suffered, ...found } = await attackOn(server, { ...attack, path: filled(attack.path, ids) }, others, headers)
  for (const [word, count] of Object.entries(suffered)) answers[word] = (answers[word] ?? 0) + count
  setting.say(answersText(suffered))
  return { ...found, calmMegabytes: calm.megabytes, calmP99: calm.p99 }
}

async function attackOn(
  server: Pick<Server, 'url' | 'pid' | 'usage'>,
  attack: Tried['attack'],
  { attacker, plan }: Others,
  headers: Record<string, string> = {},
) {
  const seconds = 2 * plan.seconds
  const connections = Math.min(attack.connections, plan.connectionsMax)
  let suffered: Suffered = {}
  const { megabytes, p99 } = await watch(server, async () => {
    suffered = await attacker.call({ ...attack, connections, url: server.url, headers, seconds })
    await sleep(seconds * 250)
  })
  return { megabytes, p99, suffered }
}

const answersText = (answers: Suffered): string =>
  Object.entries(answers)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([word, count]) => `${whole(count)} × ${word}`)
    .join(', ')

function assertAnswered(name: string, { 'no answer': none = 0, ...answers }: Suffered): void {
  const answered = Object.values(answers).reduce((sum, count) => sum + count, 0)
  if (answered < ANSWERED * (answered + none))
    throw new Error(`${name}: ${none} requests got no answer, ${answered} got one`)
}

/** Fills a store with events, once. */
async function history(server: Server, { load, plan: { storedEvents }, filled: haveHistory }: Others): Promise<Ids> {
  if (!haveHistory.has(server)) await load.fillHistory(server, Math.min(storedEvents, HISTORY_EVENTS))
  haveHistory.add(server)
  return server.home()
}
