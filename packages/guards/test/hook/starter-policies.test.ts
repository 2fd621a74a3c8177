/** examples/policies/coding-agents.yaml: one list of policies for all agents, by the kind of the tool. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { decide, type Policy } from '@tacho/policy/decide.ts'
import { parse } from 'yaml'
import { AGENT_NAMES, AGENTS, signalsOf } from '../../src/hook/agents.ts'
import { WRITES_OUTSIDE, writesOutside } from '../../src/hook/written-paths.ts'
import { COMMANDS, ORDINARY, OUTSIDE, UNSEEN } from './attacks.ts'
import { permanentFolder } from './hook-session.ts'

const FILE = fileURLToPath(new URL('../../../../examples/policies/coding-agents.yaml', import.meta.url))
const { policies: named } = parse(readFileSync(FILE, 'utf8')) as {
  policies: Record<string, Pick<Policy, 'condition' | 'severity' | 'action'>>
}
const policies = Object.entries(named).map(([name, policy]) => ({ ...policy, policyId: name, name, version: '1' }))

let root: string
let project: string
before(() => {
  root = permanentFolder()
  project = path.join(root, 'shop')
  mkdirSync(path.join(project, '.git'), { recursive: true })
  mkdirSync(path.join(project, 'src'))
  symlinkSync('/etc', path.join(project, 'link'))
  symlinkSync(path.join(root, 'nothing'), path.join(project, 'broken'))
})
after(() => rmSync(root, { recursive: true, force: true }))

const matches = (toolName: string, input: Record<string, unknown>, signals: string[]): string[] => {
  const { matched, failures } = decide(policies, { tool: { name: toolName, input }, risk: { signals }, now: 0 })
  assert.deepEqual(failures, [], JSON.stringify(input).slice(0, 200))
  return matched.map(({ name }) => name)
}

test('the examples cover every policy', () => {
  assert.deepEqual([...Object.keys(COMMANDS), 'outside-project'].sort(), Object.keys(named).sort())
})

const ofShell = (agent: (typeof AGENT_NAMES)[number], command: string, cwd = project): string[] => {
  const shell = AGENTS[agent].kinds.shell[0] ?? ''
  const outside = writesOutside(agent, shell, { command }, { cwd, start: project }) ? [WRITES_OUTSIDE] : []
  return matches(shell, { command }, [...signalsOf(agent, shell), ...outside])
}

for (const agent of AGENT_NAMES) {
  const edit = AGENTS[agent].kinds.edit[0] ?? ''
  for (const [name, { matched, free }] of Object.entries(COMMANDS)) {
    test(`${agent}: ${name}`, () => {
      for (const command of matched) assert.ok(ofShell(agent, command).includes(name), command)
      for (const command of free) assert.ok(!ofShell(agent, command).includes(name), command)
    })
  }

  test(`${agent}: ordinary commands match nothing`, () => {
    for (const command of ORDINARY) assert.deepEqual(ofShell(agent, command), [], command)
  })

  test(`${agent}: a command that writes outside the project`, () => {
    for (const command of OUTSIDE.matched) assert.ok(ofShell(agent, command).includes('outside-project'), command)
    for (const command of OUTSIDE.free) assert.ok(!ofShell(agent, command).includes('outside-project'), command)
    assert.ok(ofShell(agent, 'rm ../../a', path.join(project, 'src')).includes('outside-project'))
    assert.ok(!ofShell(agent, 'rm ../a', path.join(project, 'src')).includes('outside-project'))
  })

  test(`${agent}: an edit outside the project`, () => {
    const isOutside = (input: unknown, cwd = project) => writesOutside(agent, edit, input, { cwd, start: project })
    const files = [
      '/etc/passwd',
      `${homedir()}/.bashrc`,
      '~/.bashrc',
      '../other/a',
      'link/passwd',
      'broken',
      'src/../../a',
    ]
    for (const file of files) assert.ok(isOutside({ file_path: file }), file)
    for (const file of ['src/a.ts', 'new/folder/a.ts', '/tmp/a', path.join(project, 'a'), './../shop/a'])
      assert.ok(!isOutside({ path: file }), file)
    // The folder of the session may change; the project does not.
    assert.ok(isOutside({ filePath: 'a' }, root))
    assert.ok(!isOutside({ filePath: '../a' }, path.join(project, 'src')))
    const patch = (file: string) => ({
      command: `*** Begin Patch\n*** Update File: src/a.ts\n@@\n-a\n*** Add File: ${file}\n+b\n*** End Patch`,
    })
    assert.ok(isOutside(patch('../../x')))
    assert.ok(!isOutside(patch('docs/x.md')))
    const read = AGENTS[agent].kinds.read[0] ?? ''
    assert.ok(!writesOutside(agent, read, { file_path: '/etc/passwd' }, { cwd: project, start: project }))
    assert.deepEqual(matches(edit, { file_path: 'x' }, [...signalsOf(agent, edit), WRITES_OUTSIDE]), [
      'outside-project',
    ])
  })

  test(`${agent}: edits of settings and reads of secrets, by the fields of each agent`, () => {
    const signals = signalsOf(agent, edit)
    for (const field of ['file_path', 'path', 'filePath']) {
      const settings = ['/repo/.claude/settings.json', '.CLAUDE/settings.json', 'src/../.codex/hooks.json', '.mcp.json']
      for (const file of settings)
        assert.deepEqual(matches(edit, { [field]: file, content: 'x' }, signals), ['agent-settings'], file)
      const free = ['/repo/src/a.ts', '/repo/claude/a.ts', 'docs/.claude.md', '/r/.claude/worktrees/x/src/a.ts']
      for (const file of free)
        assert.deepEqual(matches(edit, { [field]: file, content: '.claude/settings.json' }, signals), [], file)
      assert.deepEqual(matches(edit, { [field]: '/r/.claude/worktrees/../settings.json' }, signals), ['agent-settings'])
      assert.deepEqual(matches(edit, { [field]: '/r/.claude/worktrees/x/.claude/settings.json' }, signals), [
        'agent-settings',
      ])
      assert.deepEqual(matches('any', { [field]: '/repo/.env', edits: [{}] }, []), ['secrets'])
      assert.deepEqual(matches('any', { [field]: '/repo/.env.example' }, []), [])
    }
    const patch = '*** Begin Patch\n*** Update File: .codex/hooks.json\n@@\n'
    assert.deepEqual(matches(edit, { command: patch }, signals), ['agent-settings'])
    const notes = '*** Begin Patch\n*** Update File: docs/a.md\n@@\n+Edit .claude/settings.json and .env, run bash.\n'
    assert.deepEqual(matches(edit, { command: notes }, signals), [])
    assert.deepEqual(matches(edit, { command: '*** Begin Patch\n*** Add File: app/.env\n+A=1\n' }, signals), [
      'secrets',
    ])
  })
}

test('tricks that texts cannot show: docs/coding-agents.md names them', () => {
  for (const command of UNSEEN) assert.deepEqual(ofShell('claude-code', command), [], command)
})

test('a command of 4,500 characters and a patch of 58,000 are judged; a longer one counts as matched', () => {
  const commandOf = (chars: number) =>
    `cat > src/a.md <<'EOF'\n${'A line of text about git, sh and python.\n'.repeat(chars / 41)}EOF`
  assert.deepEqual(ofShell('claude-code', commandOf(4_500)), [])
  const { matched, failures } = decide(policies, {
    tool: { name: 'Bash', input: { command: `${commandOf(30_000)}; bash` } },
    risk: { signals: ['tool_shell'] },
    now: 0,
  })
  assert.ok(matched.some(({ name }) => name === 'interactive-shells') && failures.length > 0)
  const patch = `*** Begin Patch\n*** Update File: src/a.ts\n@@\n${'+A line of an ordinary text.\n'.repeat(2_000)}`
  assert.deepEqual(matches('apply_patch', { command: patch }, ['tool_edit']), [])
})
