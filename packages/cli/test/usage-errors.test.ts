import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command, Option } from 'commander'
import { parseDays } from '../src/data/retention.ts'
import { freePort } from '../../server/test/setup/free-port.ts'
import { COMMANDS, createProgram } from '../src/main.ts'
import { runCommand, type Variables } from './tacho.ts'

const NOWHERE: Variables = { TACHO_URL: await closedAddress(), TACHO_OPERATOR_TOKEN: 't', TACHO_API_KEY: 'k' }

/** An address without a server. */
async function closedAddress(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`
}

test('wrong usage exits with 2 and a sentence on stderr, with nothing on stdout', async () => {
  const lines: string[][] = [
    ['nonsense'],
    ['nonsense', '--help'],
    ['help', 'nonsense'],
    ['runs', 'nonsense'],
    ['runs', 'list', '--nonsense'],
    ['runs', 'list', '--limit', '0'],
    ['runs', 'list', '--status', 'DONE'],
    ['runs', 'list', '--from', 'yesterday'],
    ['retention', 'set'],
    // These cannot be undone, and without a terminal there is no way to ask.
    ['keys', 'revoke', 'x'],
    ['retention', 'set', '--inherit', '--runs', '90'],
    ['retention', 'preview', '--runs', '0'],
    ['retention', 'preview', '--payloads', 'always'],
    ['runs', 'show', 'a', 'b'],
    ['keys', 'create', '--name', 'x'],
    ['keys', 'create', '--scopes', 'all'],
    ['keys', 'create', '--name', 'x', '--scopes', 'everything'],
    ['import'],
    ['import', 'x', '--default-outcome', 'RUNNING'],
    ['demo', '--seed', 'ä'],
    ['restore', '/nowhere/tacho.db'],
    ['recover', '--api-key-for', 'default'],
    ['serve', '--port', 'many'],
    ['serve', '--log-level', 'loud'],
    // `--version` must not print the program's version here: the command would deploy nothing and succeed.
    ['prompts', 'deploy', 'greeting', '--version', '2'],
    ['policies', 'deploy', 'refunds', '--version', '2', '-e', 'default/production'],
  ]
  for (const line of lines) {
    const { code, stdout, stderr } = await runCommand(line, NOWHERE)
    assert.deepEqual([line, code, stdout], [line, 2, ''])
    assert.match(stderr, /^tacho: /)
    assert.ok(!/\n +at /.test(stderr), 'no stack trace')
  }
})

test('an unknown option names the one that begins so, and serve --check starts nothing', async () => {
  const near: [string[], string][] = [
    [['serve', '--data', './x'], '--data-dir'],
    [['serve', '--data=./x'], '--data-dir'],
    [['serve', '--prot', '1'], '--port'],
    [['runs', 'list', '--statu', 'FAILED'], '--status'],
    [['runs', 'list', '--sess', 'x'], '--session'],
    [['serve', '--database'], 'one of --database-url, --database-pool, --database-timeout'],
  ]
  for (const [line, option] of near) {
    const { code, stderr } = await runCommand(line, NOWHERE)
    assert.deepEqual([line, code], [line, 2])
    assert.ok(stderr.endsWith(`(Did you mean ${option}?)\n`), stderr)
  }
  const far = await runCommand(['serve', '--nonsense'], NOWHERE)
  assert.equal(far.stderr, "tacho: unknown option '--nonsense'\n")
  const checked = await runCommand(['serve', '--check', '--port', '1'], NOWHERE)
  assert.deepEqual([checked.code, checked.stdout, checked.stderr], [0, '', ''])
  assert.equal((await runCommand(['serve', '--check', '--port', 'many'], NOWHERE)).code, 2)
})

test('an error shows words of the command line without what hides or reorders text', async () => {
  const word = 'x\u009b31m\u202eEVIL\u0085\u2028\n(Did you mean --yes?)'
  const shown = 'x\\u009b31m\\u202eEVIL\\u0085\\u2028\\n(Did you mean --yes?)'
  const lines = [
    [word],
    ['runs', word],
    ['runs', 'show', word, word],
    ['runs', 'list', `--${word}`],
    ['runs', 'list', '--status', word],
    ['hook', 'check', word],
    ['completion', word],
    ['policies', 'check', '--condition', word],
    ['import', word],
  ]
  for (const line of lines) {
    const { code, stderr } = await runCommand(line, NOWHERE)
    assert.notEqual(code, 0)
    // Faults of conditions do not quote the command line.
    if (line[0] !== 'policies') assert.ok(stderr.includes(shown), `${line[0]}: ${stderr}`)
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(stderr.trimEnd(), /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/, line.join(' '))
  }
})

test('days are a number with or without a d, up to their limit', () => {
  assert.deepEqual(['1', '30d', '3650', '3650d', 'forever'].map(parseDays), [1, 30, 3650, 3650, 'forever'])
  for (const text of ['0', '0d', '3651', '3651d', '30h', 'd', '', '1.5d', '-1'])
    assert.throws(() => parseDays(text), /whole days/, text)
})

test('no option has a value of null, which Commander would turn into an empty text', async () => {
  const optionsOf = (command: Command): Option[] => [...command.options, ...command.commands.flatMap(optionsOf)]
  const accepted: string[] = []
  for (const name of Object.keys(COMMANDS)) {
    const program = await createProgram([name])
    for (const { long, parseArg } of program.commands.flatMap(optionsOf)) {
      for (const word of ['default', 'forever', 'anywhere', 'never', 'none', 'newest', '1', '1d', 'x']) {
        try {
          assert.notEqual(parseArg?.(word, undefined as never), null, `${name} ${long} ${word}`)
          if (parseArg) accepted.push(word)
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error
        }
      }
    }
  }
  for (const word of ['default', 'forever', 'anywhere']) assert.ok(accepted.includes(word), word)
})

test('a missing or empty variable gives a sentence that says what to do', async () => {
  const without = await runCommand(['workspaces', 'list'])
  assert.deepEqual([without.code, /set TACHO_OPERATOR_TOKEN/.test(without.stderr)], [2, true])
  const empty = await runCommand(['import', 'x'], { TACHO_API_KEY: '' })
  assert.deepEqual([empty.code, /TACHO_API_KEY is empty/.test(empty.stderr)], [2, true])
  const wrong = await runCommand(['workspaces', 'list'], { ...NOWHERE, TACHO_URL: 'localhost' })
  assert.deepEqual([wrong.code, /TACHO_URL must be/.test(wrong.stderr)], [2, true])
})

test('without a server, each command exits with 1 and says what to do', async () => {
  for (const line of [
    ['workspaces', 'list'],
    ['runs', 'follow', 'x', '-e', 'a/b'],
    ['backup', 'never-written.db'],
  ]) {
    const { code, stdout, stderr } = await runCommand(line, NOWHERE)
    assert.deepEqual([line, code, stdout], [line, 1, ''])
    assert.match(
      stderr,
      /^tacho: No answer from http:\/\/127\.0\.0\.1:\d+: the connection was refused\. Start the server with/,
    )
  }
})

test('doctor without a server needs no token, and can print JSON', async () => {
  const { code, stdout } = await runCommand(['doctor', '--json'], { TACHO_URL: NOWHERE['TACHO_URL'] ?? '' })
  const report = JSON.parse(stdout) as { ok: boolean; checks: { name: string; detail: string }[] }
  assert.deepEqual([code, report.ok, report.checks[0]?.name], [1, false, 'server'])
})

test('help of the program and of each command goes to stdout, with exit code 0', async () => {
  const help = await runCommand(['--help'])
  assert.equal(help.code, 0)
  const shown = [...help.stdout.matchAll(/^ {2}([a-z][a-z-]*) /gm)].map(([, name]) => name)
  const known = Object.keys(COMMANDS).filter((name) => COMMANDS[name]?.hidden !== true)
  assert.deepEqual(shown, [...known, 'help'])
  for (const line of [['runs', 'list'], ['keys', 'create'], ['import'], ['serve'], ['doctor']]) {
    const { code, stdout } = await runCommand([...line, '--help'])
    assert.equal(code, 0)
    assert.match(stdout, /\nExamples?:\n {2}tacho /)
  }
})

test('without a command, the help is shown as wrong usage', async () => {
  const { code, stdout, stderr } = await runCommand([])
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^Usage: tacho/)
})

test('an error shows no character that could hide or reorder what it says', async () => {
  const { code, stderr } = await runCommand(
    ['runs', 'show', 'a\u202eb\u009bc', '--url', 'http://127.0.0.1:1/\u202e\u009b'],
    NOWHERE,
  )
  assert.notEqual(code, 0)
  assert.doesNotMatch(stderr, /[\u202e\u009b]/)
})
