/** Keeps docs/commands.md as the program says it. UPDATE_DOCS=1 writes the page. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Command } from 'commander'
import { COMMANDS, createProgram } from '../src/main.ts'

const FILE = new URL('../../../docs/commands.md', import.meta.url)
const WIDTH = 110

/** What `--help` prints, without colours. */
function helpOf(command: Command): string {
  const lines: string[] = []
  command.configureOutput({
    writeOut: (text) => lines.push(text),
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  return lines.join('').trim()
}

function sections(command: Command, name: string): string[] {
  const { commands } = command
  const level = '#'.repeat(Math.min(name.split(' ').length, 3))
  const own = `${level} ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`
  return [
    own,
    ...commands.flatMap((child) => (child.name() === 'help' ? [] : sections(child, `${name} ${child.name()}`))),
  ]
}

test('the page of commands has every command with its flags', async () => {
  const parts: string[] = []
  for (const name of Object.keys(COMMANDS)) {
    const program = await createProgram([name])
    const command = program.commands.find((known) => known.name() === name)
    assert.ok(command, name)
    parts.push(...sections(command, `tacho ${name}`))
  }
  const page = `# Commands

\`tacho\` means \`npx tacho\` in the clone. Or run \`export PATH=$PWD/packages/cli/bin:$PATH\` there once. Variables, exit codes and the
shapes of \`--json\` are in [automation](automation.md). This page is what \`--help\` prints.

${parts.join('\n')}`
  if (process.env['UPDATE_DOCS']) writeFileSync(FILE, page)
  assert.ok(
    readFileSync(FILE, 'utf8') === page,
    'docs/commands.md is stale: run UPDATE_DOCS=1 npm test -- commands-doc',
  )
})
