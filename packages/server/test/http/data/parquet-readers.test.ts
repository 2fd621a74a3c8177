/**
 * A Parquet file of runs in the readers of analysts: the same values, types and nulls, in whatever zone they run. The Python of
 * TACHO_TEST_PYTHON, or else python3, has those readers that it has; hyparquet is always there.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { zstdDecompressSync } from 'node:zlib'
import { parquetReadObjects } from 'hyparquet'
import { event, startService, type Service } from '../../setup/service.ts'

const PYTHON = process.env['TACHO_TEST_PYTHON'] ?? 'python3'
const READERS = fileURLToPath(new URL('parquet_readers.py', import.meta.url))
const NOTEBOOK = fileURLToPath(new URL('../../../../../docs/notebooks/failed_runs.py', import.meta.url))
/** Zones behind UTC, ahead of UTC, and UTC itself. Their days begin at different times. */
const ZONES = ['America/New_York', 'Asia/Tokyo', 'UTC']

const hasModules = (...names: string[]): boolean => {
  const program = `import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ${JSON.stringify(names)})))`
  try {
    execFileSync(PYTHON, ['-c', program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const without = (...names: string[]): string | false =>
  !hasModules(...names) && `this Python has no ${names.join(', ')}: name one with TACHO_TEST_PYTHON`

interface Read {
  version: string
  rows: Record<string, unknown>[]
  timeType: string
  meanCost: number
}

let service: Service
let folder: string
let file: string
/** An hour before midnight in UTC, yesterday: another day in Tokyo. */
const LATE = Math.floor(Date.now() / 86_400_000) * 86_400_000 - 3_600_000

before(async () => {
  service = await startService()
  folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-test-'))
  file = path.join(folder, 'runs.parquet')
  const call = (runId: string, payload: object, more: object = {}) =>
    event({ runId, eventType: 'LLM_CALL', timestamp: LATE, payload: { model: 'm', ...payload }, ...more })
  const big = { promptTokens: 999_999_999, completionTokens: 1, totalTokens: 1_000_000_000 }
  const said = { userId: 'Zoë 😀', runTags: ['beta', 'eu'] }
  await service.record([
    ...Array.from({ length: 9 }, () => call('a-known', { cost: 0.125, usage: big })),
    call('b-free', { cost: 0, usage: { promptTokens: 5, completionTokens: 0, totalTokens: 5 } }),
    call('c-unknown', {}),
    event({ runId: 'd-failed', timestamp: LATE, eventType: 'USER_INPUT', payload: { text: 'Where is it?', ...said } }),
    event({
      runId: 'd-failed',
      timestamp: LATE + 1,
      eventType: 'SESSION_OUTCOME',
      payload: { status: 'FAILED', error: { name: 'TimeoutError', message: 'no answer' } },
    }),
  ])
  const { environmentId, operatorToken, url } = service
  const reply = await fetch(`${url}/operator/v1/environments/${environmentId}/export/parquet?table=runs`, {
    headers: { authorization: `Bearer ${operatorToken}` },
  })
  assert.equal(reply.status, 200)
  writeFileSync(file, new Uint8Array(await reply.arrayBuffer()))
})
after(async () => {
  await service.close()
  rmSync(folder, { recursive: true })
})

const none = { cost: null, totalTokens: null, unpricedCalls: 0, userId: null, tags: [], failureMessage: null }
const EXPECTED = [
  // A number of tokens that needs more than 32 bits.
  { ...none, runId: 'a-known', startedAt: LATE, cost: 1.125, totalTokens: 9_000_000_000 },
  { ...none, runId: 'b-free', startedAt: LATE, cost: 0, totalTokens: 5 },
  { ...none, runId: 'c-unknown', startedAt: LATE, unpricedCalls: 1 },
  {
    ...none,
    runId: 'd-failed',
    startedAt: LATE,
    userId: 'Zoë 😀',
    tags: ['beta', 'eu'],
    failureMessage: 'no answer',
    title: 'Where is it?',
  },
]

function assertRows(rows: readonly Record<string, unknown>[], reader: string): void {
  const columns = Object.keys(EXPECTED[0]!)
  const shown = rows.map((row, at) =>
    Object.fromEntries([...columns, ...(at === 3 ? ['title'] : [])].map((name) => [name, row[name] ?? null])),
  )
  assert.deepEqual(shown, EXPECTED, reader)
}

test('hyparquet reads every value, time and null', async () => {
  const { buffer } = Uint8Array.from(readFileSync(file))
  const compressors = { ZSTD: (data: Uint8Array) => zstdDecompressSync(data) }
  const rows = (await parquetReadObjects({ file: buffer, compressors })) as Record<string, unknown>[]
  const plain = rows
    .map((row): Record<string, unknown> => ({
      ...row,
      startedAt: Number(row['startedAt']),
      totalTokens: row['totalTokens'] === null ? null : Number(row['totalTokens']),
      unpricedCalls: Number(row['unpricedCalls']),
    }))
    .toSorted((a, b) => (String(a['runId']) < String(b['runId']) ? -1 : 1))
  assertRows(plain, 'hyparquet')
})

/** The name of each reader for the type of a time with a zone. */
const TIME_TYPES = {
  duckdb: /^TIMESTAMP WITH TIME ZONE$/,
  pandas: /^datetime64\[ms, UTC\]$/,
  polars: /^Datetime\(.*ms.*UTC.*\)$/,
  // fastparquet returns UTC, but its type has no zone.
  fastparquet: /^datetime64\[ms\]$/,
}

for (const [reader, timeType] of Object.entries(TIME_TYPES)) {
  const modules = reader === 'pandas' ? ['pandas', 'pyarrow'] : [reader]
  test(`${reader} reads every value, time and null, in each zone`, { skip: without(...modules) }, (t) => {
    for (const zone of ZONES) {
      const env = { ...process.env, TZ: zone }
      const read = JSON.parse(execFileSync(PYTHON, [READERS, reader, file], { encoding: 'utf8', env })) as Read
      // fastparquet reads no lists.
      const rows =
        reader === 'fastparquet' ? read.rows.map((row, at) => ({ ...row, tags: EXPECTED[at]!.tags })) : read.rows
      assertRows(rows, `${reader} ${read.version} in ${zone}`)
      assert.match(read.timeType, timeType)
      // The mean of the two known costs, 1.125 and 0. If unknown costs counted as zero, the mean would be half of it.
      assert.equal(read.meanCost, 0.5625)
      t.diagnostic(`${reader} ${read.version}`)
    }
  })
}

const notebookModules = ['duckdb', 'matplotlib', 'pandas', 'pyarrow']
test('the notebook of the documentation runs on it', { skip: without(...notebookModules) }, () => {
  const picture = path.join(folder, 'failed-runs.png')
  const env = { ...process.env, RUNS_FILE: file, PICTURE_FILE: picture, ZONE: 'Asia/Tokyo', MPLCONFIGDIR: folder }
  const text = execFileSync(PYTHON, [NOTEBOOK], { encoding: 'utf8', env, cwd: folder })
  assert.match(text, /TimeoutError/)
  assert.match(text, /^ +free +1 +1 +0\.000 +0$/m)
  assert.match(text, /^unknown +3 +0 +1\.125 +1$/m)
  assert.match(text, /1 failed runs on 1 days/)
  assert.ok(existsSync(picture))
})
