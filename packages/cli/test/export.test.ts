/** Exports to files, and imports from them. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, test } from 'node:test'
import { gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { workDone } from '../../server/test/setup/work-done.ts'
import { OPERATOR_TOKEN, runCommand, serveFrom, startServer, type Ended } from './tacho.ts'

const server = await startServer()
after(() => server.stop())
const tour = await runCommand(['demo', '--seed', 'tour', '--json'], server.variables)
assert.equal(tour.code, 0, tour.stderr)
const { json, text, refused } = server
const WHERE = ['--environment', 'default/tacho-demo']

test('an export continues after an interruption, and its import is exported again byte for byte', async () => {
  // Wait for the jobs that change issues after failures and issue records arrive.
  await workDone(server, 'find_failures', 'review_issue_record')
  const whole = path.join(server.directory, 'whole.jsonl')
  const { counts, lines } = await json<{ counts: Record<string, number>; lines: number }>(
    'export',
    ...WHERE,
    '-o',
    whole,
  )
  const content = readFileSync(whole, 'utf8')
  assert.equal(content.split('\n').filter((line) => !/^\{"type":"(mark|end)"|^$/.test(line)).length, lines)
  assert.ok((counts['event'] ?? 0) > 100)
  assert.equal(
    (await server.tacho(['export', ...WHERE, '--agent', 'no-such-agent'])).stdout.includes('"type":"run"'),
    false,
  )
  assert.equal((await refused('export', ...WHERE, '-o', whole)).code, 1)

  // Exports that were interrupted: within a line after a mark, and compressed before the first mark.
  const mark = content.indexOf('{"type":"mark"')
  assert.ok(mark > 0)
  const resumed = path.join(server.directory, 'resumed.jsonl')
  writeFileSync(`${resumed}.partial`, content.slice(0, content.indexOf('\n', mark) + 20))
  assert.match((await refused('export', ...WHERE, '-o', resumed)).stderr, /continue it with --resume/)
  await text('export', ...WHERE, '-o', resumed, '--resume')
  assert.equal(readFileSync(resumed, 'utf8') === content, true)
  const packed = path.join(server.directory, 'packed.jsonl.zst')
  writeFileSync(`${packed}.partial`, zstdCompressSync(content).subarray(0, 5_000))
  await text('export', ...WHERE, '-o', packed, '--resume')
  assert.equal(zstdDecompressSync(readFileSync(packed)).toString() === content, true)

  await text('environments', 'create', 'archive', '-w', 'default')
  const into = ['--environment', 'default/archive']
  const damaged = path.join(server.directory, 'damaged.jsonl')
  writeFileSync(damaged, content.replace('"type":"run"', '"type":"run" '))
  assert.match((await refused('restore-export', damaged, ...into)).stderr, /damaged before or in line \d+/)
  writeFileSync(damaged, content.slice(0, -100))
  assert.equal((await refused('restore-export', damaged, ...into)).code, 1)
  assert.match((await refused('restore-export', packed, ...into)).stderr, /not empty/)
  assert.match(await text('restore-export', packed, ...into, '--resume'), /lines written into default\/archive/)
  const cut = path.join(server.directory, 'cut.jsonl.gz')
  writeFileSync(cut, gzipSync(content).subarray(0, -50))
  const afterLine = /cut\.jsonl\.gz" cannot be read after line \d+: unexpected end of file/
  assert.match((await refused('restore-export', cut, ...into, '--resume')).stderr, afterLine)
  const again = (await server.tacho(['export', ...into])).stdout
  const comparable = (some: string) =>
    // Leave out lines that differ: names, the checksums over them, and approvals, which may have expired since.
    some.split('\n').filter((line) => !/^\{"type":"(export|mark|end|approval)"/.test(line))
  assert.deepEqual(comparable(again), comparable(content))
  assert.match(await text('restore-export', resumed, ...into, '--resume'), /^0 lines written/)
})

test('a run is written into one HTML file, which is never overwritten', async () => {
  const file = path.join(server.directory, 'run.html')
  const { bytes } = await json<{ bytes: number }>('runs', 'export', 'demo-tour-01', '--html', file, ...WHERE)
  const page = readFileSync(file, 'utf8')
  assert.equal(Buffer.byteLength(page), bytes)
  assert.match(page, /^<!doctype html>[^]*demo-tour-01[^]*Payloads are not included[^]*<\/html>\n$/)
  const whole = path.join(server.directory, 'whole.html')
  assert.match(
    await text('runs', 'export', 'demo-tour-01', '--html', whole, '--payloads', ...WHERE),
    /^Run written to /,
  )
  assert.match(readFileSync(whole, 'utf8'), /<pre/)
  assert.match((await refused('runs', 'export', 'demo-tour-01', '--html', file, ...WHERE)).stderr, /already exists/)
  const none = path.join(server.directory, 'none.html')
  assert.match((await refused('runs', 'export', 'nothing', '--html', none, ...WHERE)).stderr, /Unknown run/)
  assert.equal(existsSync(none), false)
})

test('events and runs are written as Parquet', async () => {
  const file = path.join(server.directory, 'events.parquet')
  const { table, bytes } = await json<{ table: string; bytes: number }>(
    'export',
    '--parquet',
    'events',
    '-o',
    file,
    ...WHERE,
  )
  assert.equal(table, 'events')
  const written = readFileSync(file)
  assert.deepEqual(
    [written.length, written.toString('latin1', 0, 4), written.toString('latin1', bytes - 4)],
    [bytes, 'PAR1', 'PAR1'],
  )
  const refusal = async (...args: string[]) => (await refused('export', '--parquet', ...args, ...WHERE)).stderr
  assert.match(await refusal('events', '-o', file), /already exists/)
  assert.match(await refusal('runs', '-o', `${file}.2`, '--resume'), /cannot continue a Parquet file/)
})

test('a backup can be restored to another data directory; neither is ever overwritten', async () => {
  const file = path.join(server.directory, 'backup.db')
  const { bytes } = await json<{ bytes: number }>('backup', file)
  assert.equal(readFileSync(file).length, bytes)
  assert.equal((await refused('backup', file)).code, 1)
  assert.equal((await refused('backup', path.join(server.directory, 'no', 'such'))).code, 1)

  const dataDir = path.join(server.directory, 'restored')
  assert.match(await text('restore', file, '--data-dir', dataDir), /is now the store in/)
  assert.equal((await refused('restore', file, '--data-dir', dataDir)).code, 1)
  assert.match(
    (await refused('restore', file, '--data-dir', server.dataDir, '--replace')).stderr,
    /open in another process/,
  )
  const replaced = await json<{ replaced: string }>('restore', file, '--data-dir', dataDir, '--replace')
  assert.ok(existsSync(replaced.replaced))

  const copy = await serveFrom(dataDir)
  try {
    const { code, stderr } = await runCommand(['runs', 'show', 'demo-tour-02', ...WHERE], {
      ...server.variables,
      TACHO_URL: copy.url,
    })
    assert.equal(code, 0, stderr)
  } finally {
    await copy.stop()
  }
  const lost = await json<{ operatorToken: string; revokedOperatorTokens: number }>(
    'recover',
    '--data-dir',
    dataDir,
    '--revoke-old',
  )
  assert.equal(lost.revokedOperatorTokens, 1)
  assert.match(await text('recover', '--data-dir', dataDir, '--api-key-for', 'default/development'), /API key +tacho_/)
  const again = await serveFrom(dataDir)
  try {
    const ask = (token: string): Promise<Ended> =>
      runCommand(['workspaces', 'list'], { TACHO_URL: again.url, TACHO_OPERATOR_TOKEN: token })
    assert.deepEqual([(await ask(lost.operatorToken)).code, (await ask(OPERATOR_TOKEN)).code], [0, 1])
  } finally {
    await again.stop()
  }
})
