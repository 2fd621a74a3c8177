import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { COMMANDS, createProgram } from '../../src/main.ts'
import { fitHelp } from '../../src/engine/help.ts'

const TERMINAL = { isTTY: true, columns: 80 }

test('no line of a help breaks within a word; examples and files stay whole, to be copied', async () => {
  for (const command of await allCommands()) assertFits(command)
})

test("the flags that commands share come after a command's own", async () => {
  const helps = (await allCommands()).map(helpOf).filter((help) => help.includes('\nCommon options:\n'))
  assert.ok(helps.length > 50)
  const flagsOf = (part = '') => [...part.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, flag]) => flag)
  const shared = ['--environment', '--url', '--json', '--token-file', '--utc']
  for (const help of helps) {
    const [, own, common] = help.split(/^(?:Options|Common options):\n/m)
    assert.equal(flagsOf(own).at(-1), '--help', help)
    assert.deepEqual(
      flagsOf(common).filter((flag) => flag === undefined || !shared.includes(flag)),
      [],
      help,
    )
  }
})

async function allCommands(): Promise<Command[]> {
  const named = ['', ...Object.keys(COMMANDS)].map(async (name) => {
    const program = await createProgram([name])
    const command = program.commands.find((each) => each.name() === name) ?? program
    return [command, ...command.commands]
  })
  return (await Promise.all(named)).flat()
}

function helpOf(command: Command): string {
  const written: string[] = []
  const writeOut = (text: string) => void written.push(fitHelp(text, TERMINAL))
  command.configureOutput({ writeOut, getOutHelpWidth: () => TERMINAL.columns }).outputHelp()
  return written.join('')
}

function assertFits(command: Command): void {
  const tooWide = helpOf(command)
    .split('\n')
    .filter((line) => line.length > TERMINAL.columns)
  assert.deepEqual(
    tooWide.filter((line) => !/^ {2}.*(tacho|TACHO_|curl|jq)|^ {6}\S|^ *\S+$/.test(line)),
    [],
    command.name(),
  )
}

test('a sentence is joined before it is wrapped, a term keeps its column, and a pipe gets the text as it is', () => {
  const word = 'word '.repeat(12).trim()
  const text = `${word}\n${word}\nExamples:\n  tacho ${word} ${word}\n  TERM  ${word} ${word}\n`
  const lines = fitHelp(text, TERMINAL).split('\n')
  assert.deepEqual(lines.slice(0, 4), [
    'word '.repeat(16).trim(),
    'word '.repeat(8).trim(),
    'Examples:',
    `  tacho ${word} ${word}`,
  ])
  assert.deepEqual(lines.slice(4), [`  TERM  ${'word '.repeat(14).trim()}`, `        ${'word '.repeat(10).trim()}`, ''])
  assert.equal(fitHelp(text, { isTTY: false, columns: 80 }), text)
})
