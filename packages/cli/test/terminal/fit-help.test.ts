import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { COMMANDS, createProgram } from '../../src/main.ts'
import { fitHelp } from '../../src/terminal/fit-help.ts'

const TERMINAL = { isTTY: true, columns: 80 }

test('no line of a help breaks within a word; examples and files stay whole, to be copied', async () => {
  for (const name of ['', ...Object.keys(COMMANDS)]) {
    const program = await createProgram([name])
    const command = program.commands.find((each) => each.name() === name) ?? program
    for (const each of [command, ...command.commands]) assertFits(each)
  }
})

function assertFits(command: Command): void {
  const written: string[] = []
  const writeOut = (text: string) => void written.push(fitHelp(text, TERMINAL))
  command.configureOutput({ writeOut, getOutHelpWidth: () => TERMINAL.columns }).outputHelp()
  const tooWide = written
    .join('')
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
