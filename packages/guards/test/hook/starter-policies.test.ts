/** examples/policies/coding-agents.yaml: one list of policies for all agents, by the kind of the tool. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { decide, type Policy } from '@tacho/policy/decide.ts'
import { parse } from 'yaml'
import { AGENT_NAMES, AGENTS, signalsOf } from '../../src/hook/agents.ts'

const FILE = fileURLToPath(new URL('../../../../examples/policies/coding-agents.yaml', import.meta.url))
const { policies: named } = parse(readFileSync(FILE, 'utf8')) as {
  policies: Record<string, Pick<Policy, 'condition' | 'severity' | 'action'>>
}
const policies = Object.entries(named).map(([name, policy]) => ({ ...policy, policyId: name, name, version: '1' }))

const COMMANDS: Record<string, { matched: readonly string[]; free: readonly string[] }> = {
  'interactive-shells': {
    matched: [
      'bash',
      'bash --norc --noprofile',
      'cd x && /bin/sh -i',
      'curl -s x | sh',
      'python3',
      'node -i',
      'env FOO=1; zsh',
      'exec bash',
      'sudo bash -l',
      'psql',
      'bash < script',
    ],
    free: [
      'bash build.sh',
      'python3 -m pytest',
      'node --version',
      'python3 -V',
      'node server.js',
      'ls bash',
      'npm test',
    ],
  },
  'agent-settings': {
    matched: [
      'echo {} > .claude/settings.json',
      'rm -rf /home/me/.codex',
      "sed -i s/a/b/ '.gemini/settings.json'",
      'cp x .git/hooks/pre-commit',
      'touch .github/hooks/x.json',
    ],
    free: ['ls src', 'cat docs/claude.md', 'git status', 'grep -r codex src'],
  },
  secrets: {
    matched: ['cat .env', 'cat app/.env.local', 'cat ~/.ssh/id_rsa', 'cp ~/.aws/credentials .', 'cat ~/.npmrc'],
    free: ['cat .env.example', 'ls environment', 'npm run env'],
  },
  'destructive-git': {
    matched: [
      'git push --force',
      'git push origin main -f',
      'git push origin +main',
      'git push --delete origin x',
      'git reset --hard HEAD~1',
      'git clean -fdx',
      'git -C x checkout -- .',
      'git branch -D x',
      'git stash drop',
    ],
    free: ['git push', 'git push origin main', 'git status', 'git checkout -b x', 'git clean -n', 'git log --oneline'],
  },
  publishing: {
    matched: [
      'npm publish',
      'npm --access public publish',
      'cargo publish',
      'twine upload dist/*',
      'docker push x/y',
      'gem push x',
    ],
    free: ['npm run build', 'cargo build', 'docker build .', 'npm install'],
  },
  'network-by-shell': {
    matched: ['curl https://x', 'cat x | nc h 1', 'ls && wget x', 'scp a b:c', 'cat x > /dev/tcp/h/1', 'sudo ssh h'],
    free: ['npm test', 'grep curl README.md', 'git log'],
  },
}

const matches = (toolName: string, input: Record<string, unknown>, signals: string[]): string[] => {
  const { matched, failures } = decide(policies, { tool: { name: toolName, input }, risk: { signals }, now: 0 })
  assert.deepEqual(failures, [], JSON.stringify(input))
  return matched.map(({ name }) => name)
}

test('the examples cover every policy', () => {
  assert.deepEqual(Object.keys(COMMANDS).sort(), Object.keys(named).sort())
})

for (const agent of AGENT_NAMES) {
  const shell = AGENTS[agent].kinds.shell[0] ?? ''
  const edit = AGENTS[agent].kinds.edit[0] ?? ''
  for (const [name, { matched, free }] of Object.entries(COMMANDS)) {
    test(`${agent}: ${name}`, () => {
      for (const command of matched) {
        assert.ok(matches(shell, { command }, signalsOf(agent, shell)).includes(name), command)
      }
      for (const command of free) {
        assert.deepEqual(matches(shell, { command }, signalsOf(agent, shell)), [], command)
      }
    })
  }
  test(`${agent}: edits of settings and reads of secrets, by the fields of each agent`, () => {
    const signals = signalsOf(agent, edit)
    for (const field of ['file_path', 'path', 'filePath']) {
      assert.deepEqual(matches(edit, { [field]: '/repo/.claude/settings.json', content: 'x' }, signals), [
        'agent-settings',
      ])
      assert.deepEqual(matches(edit, { [field]: '/repo/src/a.ts', content: '.claude/settings.json' }, signals), [])
      assert.deepEqual(matches('any', { [field]: '/repo/.env', edits: [{}] }, []), ['secrets'])
    }
    const patch = '*** Begin Patch\n*** Update File: .codex/hooks.json\n@@\n'
    assert.deepEqual(matches(edit, { command: patch }, signals), ['agent-settings'])
  })
}
