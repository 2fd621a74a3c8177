/** Tapes, datasets and experiments in folders that somebody else wrote. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { writeJunit } from '../../src/engine/files.ts'
import { reportPage } from '../../src/record/experiment/report.ts'
import { ExperimentFolder, type Experiment } from '../../src/record/experiment/experiment-folder.ts'
import { datasetFile, readDataset } from '../../src/record/tape/dataset-file.ts'
import { tapeIn } from '../../src/record/tape-files.ts'
import { ended, startTacho } from '../tacho.ts'
import { madeTape, writeTape } from './made-tape.ts'

const place = mkdtempSync(path.join(tmpdir(), 'tacho-files-'))
after(() => rmSync(place, { recursive: true, force: true }))
beforeEach(() => {
  rmSync(place, { recursive: true, force: true })
  mkdirSync(path.join(place, 'desk', 'tapes'), { recursive: true })
})
const inPlace = (...names: string[]) => path.join(place, ...names)
const refused = async (...words: string[]) => {
  const { code, stdout, stderr } = await ended(startTacho(words))
  assert.equal(stderr.includes('Unexpected error'), false, stderr)
  return { code, stdout, stderr }
}

const EXPERIMENT = { experiment: 1, name: 'a', settings: {}, chosen: [], leftOut: [] }

test('an impossible amount of money does not raise the bound of an experiment', () => {
  writeFileSync(inPlace('experiment.json'), JSON.stringify(EXPERIMENT))
  for (const spent of ['-1000', '"1"', 'null', '{}', '1e999']) {
    writeFileSync(inPlace('log.jsonl'), `{"spent":${spent},"run":"a","attempt":"a"}\n`)
    assert.throws(() => new ExperimentFolder(place).read(), /a line that no experiment writes/, spent)
  }
})

test('odd files of an experiment are said to be none', () => {
  const odd = [
    { chosen: null },
    { chosen: [{ run: 'a', tape: '../../x', checksum: '', scores: {} }] },
    { leftOut: [1] },
  ]
  for (const members of odd) {
    writeFileSync(inPlace('experiment.json'), JSON.stringify({ ...EXPERIMENT, ...members }))
    assert.throws(() => new ExperimentFolder(place).read(), /is no experiment/)
  }
})

test('the page of an experiment and the results of tests show marks of direction, and hide or move no text', () => {
  const facts = { outcome: 'FAILED', steps: 1, tokens: 1, cost: 1, modelMs: 1, scores: {} }
  const sentence = 'step 1: the tape has look "\u202egnp.exe"\n  now \u2066<b>\u200b\u0007'
  const result = { run: 'run-\u202e1', before: facts, after: facts, way: { step: 1, sentence }, measure: null }
  const more = { verdict: 'another way', seconds: 1, exitCode: 0, isTimedOut: false, recorded: null } as const
  const settings = {
    runs: 'tool="\u202ex"',
    environment: 'e',
    command: ['node', '\u202e'],
    prompts: [],
    policies: null,
  }
  const experiment = { ...EXPERIMENT, name: 'a\u202eb', begunAt: '', settings, hasMore: false } as unknown as Experiment
  const leftOut = [{ run: '\u202er', why: '\u202ew' }]
  const page = reportPage({ ...experiment, leftOut }, new Map([['a', { ...result, ...more }]]))
  assert.doesNotMatch(page, /[\u202a-\u202e\u2066-\u2069\u200b]|(?!\n)\p{Cc}/u)
  assert.match(page, /look &quot;\\u202egnp\.exe&quot;\n {2}now \\u2066&lt;b&gt;\\u200b\\u0007/)
  const junit = inPlace('results.xml')
  writeJunit(junit, 'tests', 'tapes', [{ name: 'a\u202e', failure: sentence }])
  const xml = readFileSync(junit, 'utf8')
  assert.doesNotMatch(xml, /[\u202a-\u202e\u2066-\u2069\u200b]|(?!\n)\p{Cc}/u)
  assert.match(xml, /name="a\\u202e"><failure message="step 1: [^"]*&#10; {2}now \\u2066&lt;b/)
})

test('an experiment writes through no link', () => {
  const victim = inPlace('victim')
  writeFileSync(victim, 'mine')
  for (const name of ['experiment.json', 'experiment.json.partial', 'log.jsonl']) symlinkSync(victim, inPlace(name))
  mkdirSync(inPlace('tapes'))
  symlinkSync(victim, inPlace('tapes', 'a.jsonl'))
  const folder = new ExperimentFolder(place)
  folder.begin(EXPERIMENT as unknown as Experiment)
  folder.writeTape('a.jsonl', 'tape')
  assert.throws(() => folder.spend('a', 'a', 1), /no regular file/)
  assert.equal(readFileSync(victim, 'utf8'), 'mine')
  assert.ok(lstatSync(inPlace('experiment.json')).isFile())
})

test('one process works in a folder; the lock of a dead one is taken over', () => {
  writeFileSync(inPlace('lock'), `${process.ppid}\n`)
  assert.throws(() => new ExperimentFolder(place).lock(), /works in/)
  const { pid } = spawnSync(process.execPath, ['--version'])
  writeFileSync(inPlace('lock'), `${pid}\n`)
  new ExperimentFolder(place).lock()
  assert.equal(readFileSync(inPlace('lock'), 'utf8'), `${process.pid}\n`)
})

const versionLine = (checksum: string) =>
  `${JSON.stringify({ version: 1, at: 'now', why: 'created', added: [{ run: 'a', checksum, scores: {} }], removed: [] })}\n`

test('a malformed checksum makes no other folder be read', () => {
  for (const checksum of ['/../../x', 'A'.repeat(64), '']) {
    writeFileSync(inPlace('desk', 'versions.jsonl'), versionLine(checksum))
    assert.throws(() => readDataset(place, 'desk'), /versions.jsonl:1 is not version 1/)
  }
})

function writtenTape(file: string, run: string): string {
  return writeTape(file, madeTape([{ step: 1, kind: 'input', from: 0, to: 0, text: 'Hi' }], { run }))
}

test('a tape in the place of another is refused by a test, and named by `dataset show`', async () => {
  const checksum = 'a'.repeat(64)
  writeFileSync(inPlace('desk', 'versions.jsonl'), versionLine(checksum))
  const dataset = readDataset(place, 'desk')
  writtenTape(datasetFile(dataset, { run: 'a', checksum, scores: {} }), 'a')
  const tested = await refused('test', '--dataset', 'desk@1', '--in', place, '--', 'true')
  assert.equal(tested.code, 1)
  assert.match(tested.stderr, /is not the tape that the dataset names/)
  assert.match((await refused('dataset', 'show', 'desk', '--in', place)).stdout, /its file is another tape/)
})

test('a dataset writes through no link, and waits for no pipe', async () => {
  writtenTape(inPlace('a.jsonl'), 'a')
  const outside = mkdtempSync(path.join(tmpdir(), 'tacho-outside-'))
  try {
    mkdirSync(inPlace('linked'))
    writeFileSync(inPlace('linked', 'versions.jsonl'), versionLine('a'.repeat(64)))
    symlinkSync(outside, inPlace('linked', 'tapes'))
    const added = await refused('dataset', 'add', 'linked', inPlace('a.jsonl'), '--in', place)
    assert.equal(added.code, 1)
    assert.match(added.stderr, /is a link/)
    assert.deepEqual(readdirSync(outside), [])
  } finally {
    rmSync(outside, { recursive: true })
  }
  execFileSync('mkfifo', [inPlace('desk', 'versions.jsonl')])
  assert.throws(() => readDataset(place, 'desk'), /is no regular file/)
})

test('a file beside a tape lets no tool run without a flag', async () => {
  writtenTape(inPlace('a.jsonl'), 'a')
  writeFileSync(inPlace('a.yaml'), 'mode: tools\nreadOnly: [refund]\n')
  const started = inPlace('started')
  const words = ['--', process.execPath, '-e', `require('fs').writeFileSync(${JSON.stringify(started)}, '')`]
  const tested = await refused('test', inPlace('a.jsonl'), ...words)
  assert.equal(tested.code, 1)
  assert.match(tested.stdout, /readOnly lets refund run for real: give --run-read-only/)
  assert.throws(() => lstatSync(started))
  await refused('test', inPlace('a.jsonl'), '--run-read-only', ...words)
  assert.ok(lstatSync(started).isFile())
})

test('a step beyond the tape, a pipe as a tape, and an alias are said so', async () => {
  writtenTape(inPlace('a.jsonl'), 'a')
  const replayed = await refused('replay', inPlace('a.jsonl'), '--from', '100', '--', 'true')
  assert.match(replayed.stderr, /--from must be a step of the tape, which has 1/)
  execFileSync('mkfifo', [inPlace('pipe')])
  await assert.rejects(tapeIn(inPlace('pipe')), /is no regular file/)
  await assert.rejects(tapeIn('/dev/zero'), /is no regular file/)
  writeFileSync(inPlace('examples.yaml'), '- &one { tool: a, expect: ALLOW }\n- *one\n')
  writeFileSync(inPlace('tacho.yaml'), 'policies: {}\n')
  const { stderr } = await refused('policies', 'test', '-f', inPlace('tacho.yaml'), inPlace('examples.yaml'))
  assert.match(stderr, /alias/)
})
