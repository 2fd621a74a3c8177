/** docs/commands.md must match `--help`; UPDATE_DOCS=1 writes it. Other pages must name only existing commands and flags. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ROUTES } from '@tacho/contract/web/routes.ts'
import { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import type { Command } from 'commander'
import { readManifest } from '../src/policies/apply/read-manifest.ts'
import { COMMANDS, createProgram } from '../src/main.ts'
import { COMMON_OPTIONS } from '../src/engine/help.ts'

const ROOT = path.resolve(import.meta.dirname, '../../..')
const FILE = path.join(ROOT, 'docs/commands.md')
const WIDTH = 110

/** The output of `--help` without colours. Shared flags are listed by name only. */
function helpOf(command: Command): string {
  const lines: string[] = []
  command.configureOutput({
    writeOut: (text) => lines.push(text),
    getOutHelpWidth: () => WIDTH,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  const namesOf = (block: string): string => block.match(/(?<=^ {2})(?:-\w, )?--[\w-]+/gm)?.join('  ') ?? ''
  return lines
    .join('')
    .replace(/^ {2}-h, --help .*\n/m, '')
    .replace(/^Options:\n\n/m, '')
    .replace(/^Common options:\n((?: {2}.*\n?)+)/m, (_, block: string) => `Common options: ${namesOf(block)}\n`)
    .trim()
}

/** A table row for each flag that commands share. */
function commonRows(command: Command): string[] {
  const own = command.options.filter(({ helpGroupHeading }) => helpGroupHeading === COMMON_OPTIONS)
  return [
    ...own.map(({ flags, description }) => `| \`${flags}\` | ${description} |`),
    ...command.commands.flatMap(commonRows),
  ]
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
  const common = new Set<string>()
  for (const name of Object.keys(COMMANDS)) {
    const program = await createProgram([name])
    const command = program.commands.find((known) => known.name() === name)
    assert.ok(command, name)
    parts.push(...sections(command, `tacho ${name}`))
    for (const row of commonRows(command)) common.add(row)
  }
  const page = `# Commands

This reference lists every command of \`tacho\` as \`--help\` prints it, for operators and scripts. In a clone, run \`./tacho\`, or run
\`export PATH=$PWD:$PATH\` once. Variables, exit codes and the
shapes of \`--json\` are in [automation](automation.md).
Every command has \`-h, --help\`. The common options are:

| option | |
|---|---|
${[...common].join('\n')}

${parts.join('\n')}`
  if (process.env['UPDATE_DOCS']) writeFileSync(FILE, page)
  assert.ok(
    readFileSync(FILE, 'utf8') === page,
    'docs/commands.md is stale: run UPDATE_DOCS=1 npm test -- commands-doc',
  )
})

const PAGES = globSync(['*.md', 'docs/**/*.md', 'sdks/*/README.md', 'packages/*/README.md'], { cwd: ROOT })
  .filter((file) => file !== 'CHANGELOG.md' && file !== 'docs/commands.md')
  .map((file) => ({ file, text: readFileSync(path.join(ROOT, file), 'utf8') }))

/** The output of `--help`, by command. */
function helpByCommand(): Map<string, string> {
  const page = readFileSync(FILE, 'utf8')
  return new Map(
    [...page.matchAll(/^#+ (tacho .*)\n\n```text\n([^]*?)\n```/gm)].map(([, name = '', help = '']) => [name, help]),
  )
}

test('every command in the docs exists, with its flags', () => {
  const helps = helpByCommand()
  const wrong: string[] = []
  let lines = 0
  for (const { file, text } of PAGES) {
    for (const [, line = ''] of text.matchAll(/(?:^ *(?:\$ )?|`)(?:npx )?(tacho [a-z][^`\n]*)/gm)) {
      // Remove a comment or a description beside the command.
      const [own = ''] = line.split(/ {2,}| #| -- /)
      const words = own.split(' ')
      let name = 'tacho'
      let given = 1
      for (; helps.has(`${name} ${words[given]}`); given++) name = `${name} ${words[given]}`
      const help = helps.get(name)
      // A command with subcommands takes no arguments, except `tacho hook`, which takes the agent.
      const isGroup = name !== 'tacho hook' && /^Usage: .* \[command\]$/m.test(help ?? '') && words[given] !== undefined
      lines++
      if (help === undefined || isGroup) wrong.push(`${file}: ${line}`)
      for (const [, flag = ''] of own.matchAll(/\s(--?[a-z][a-z-]*)/g)) {
        if (flag !== '--help' && !help?.includes(flag)) wrong.push(`${file}: ${flag} in ${line}`)
      }
    }
  }
  assert.ok(lines > 150, String(lines))
  assert.deepEqual(wrong, [])
})

test('the table of --json documents has every command, and only schemas that exist', () => {
  const automation = readFileSync(path.join(ROOT, 'docs/automation.md'), 'utf8')
  const table = automation.slice(automation.indexOf('## JSON'), automation.indexOf('## Importing'))
  const commands = [...helpByCommand()].filter(([, help]) => help.includes('--json'))
  assert.ok(commands.length > 80)
  const rows = [...table.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) => cell).join()
  assert.deepEqual(
    commands.map(([name]) => name.replace('tacho ', '')).filter((name) => !rows.includes(`\`${name}`)),
    [],
  )
  const contract = globSync('packages/contract/src/**/*.ts', { cwd: ROOT })
  const schemas = contract.map((file) => readFileSync(path.join(ROOT, file), 'utf8')).join('\n')
  for (const [, name = ''] of table.matchAll(/\*(\w+)\*/g)) {
    if (name !== 'italics') assert.ok(schemas.includes(`$id: '${name}'`), name)
  }
})

test('every endpoint in the docs exists', () => {
  const known = new Set<string>()
  for (const [prefix, routes] of [
    ['/openapi/v1', ROUTES],
    ['/operator/v1', OPERATOR_ROUTES],
  ] as const) {
    for (const { method, path: route } of Object.values(routes)) {
      known.add(`${method} ${prefix}${route.replaceAll(/\{\w+\}/g, '{}')}`)
    }
  }
  let endpoints = 0
  for (const { file, text } of PAGES) {
    for (const [endpoint] of text.matchAll(/\b(?:GET|POST) \/(?:openapi|operator)\/v1\/[\w/{}<>-]+/g)) {
      const route = endpoint.replaceAll(/\{\w+\}|<\w+>/g, '{}').replace('/order-1007', '/{}')
      endpoints++
      assert.ok(known.has(route) || route.endsWith('/openapi'), `${file}: ${endpoint}`)
    }
  }
  assert.ok(endpoints > 15)
})

test('every file that the docs name is in the repository', () => {
  const named = PAGES.flatMap(({ file, text }) =>
    [...text.matchAll(/`((?:packages|scripts|docs|examples|sdks|bench)\/[\w./-]+)`/g)].map(([, name = '']) => ({
      file,
      name,
    })),
  )
  assert.ok(named.length > 100, String(named.length))
  assert.deepEqual(
    named.filter(({ name }) => !existsSync(path.join(ROOT, name))),
    [],
  )
})

test('every link between pages that the server does not show leads to a file', () => {
  for (const { file, text } of PAGES) {
    for (const [, target = ''] of text.matchAll(/\]\(([^)#\s]+)/g)) {
      if (/^https?:/.test(target)) continue
      assert.ok(existsSync(path.join(ROOT, path.dirname(file), target)), `${file}: ${target}`)
    }
  }
})

test('every block of JSON in the docs parses, and every manifest is valid', () => {
  let blocks = 0
  for (const { file, text } of PAGES) {
    for (const [, indent = '', language, code = ''] of text.matchAll(/^( *)```(json|yaml)\n([^]*?)^ *```$/gm)) {
      const own = code.replaceAll(new RegExp(`^${indent}`, 'gm'), '')
      blocks++
      if (language === 'json') assert.doesNotThrow(() => void JSON.parse(own), `${file}:\n${own}`)
      else assert.ok(readManifest(own, () => ({ ok: true, text: 'text' })).ok, `${file}:\n${own}`)
    }
  }
  assert.ok(blocks > 20, String(blocks))
})
