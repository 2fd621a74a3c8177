import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, test } from 'node:test'
import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import { readFileSync } from 'node:fs'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from './real-transcripts.ts'
import { runCommand, startServer, type TestServer } from './tacho.ts'

let server: TestServer
before(async () => {
  server = await startServer()
  assert.equal((await server.tacho(['environments', 'create', 'staging'])).code, 0)
})
after(() => server.stop())

const fileOf = (name: string, text: string) => {
  const file = path.join(server.directory, name)
  writeFileSync(file, text)
  return file
}
/** Runs a command that must succeed, and returns its output. */
async function done(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await server.tacho(args)
  assert.equal(code, 0, stderr)
  return stdout
}
const STAGING = ['--environment', 'default/staging']

test('deploy --wait waits for the clients that ask, and exits with 1 if one lacks it', async () => {
  await done('prompts', 'create', 'awaited', '--content', 'Be kind.')
  assert.match(await done('prompts', 'deploy', 'awaited', ...STAGING, '--wait', '1'), /No client asks for/)
  const wrong = await server.tacho(['prompts', 'deploy', 'awaited', ...STAGING, '--wait', 'soon'])
  assert.equal(wrong.code, 2)
  await done('prompts', 'undeploy', 'awaited', ...STAGING)
})

test('a version of a prompt goes to a share of the sessions, which is raised, ended, and made the version in force', async () => {
  await done('prompts', 'create', 'shared', '--content', 'One.')
  await done('prompts', 'push', 'shared', '--content', 'Two.')
  await done('prompts', 'create', 'shared@2', '--content', 'Its name ends so.')
  const deploy = (...args: string[]) => done('prompts', 'deploy', ...args, ...STAGING)
  await deploy('shared', '--number', '1')
  const tenth = /^10 % of sessions get version 2 of Prompt shared in default\/staging; the others keep version 1\.\n/
  assert.match(await deploy('shared', '--number', '2', '--share', '10%'), tenth)
  assert.match(await done('prompts', 'list'), /^shared +2 +staging 1 \(10 %: 2\) /m)
  assert.match(await deploy('shared', '--share', '10'), /Version 2 of prompt shared has this share there already/)
  assert.match(await deploy('shared', '--number', '2', '--share', '25 %'), /^25 % of sessions/)
  assert.match(await deploy('shared', '--share', '0'), /^The share of version 2 ended: all sessions get version 1/)
  assert.match(await deploy('shared', '--share', '0'), /has no share there/)
  assert.match(await deploy('shared@1', '--note', 'x'), /Version 1 of prompt shared is already deployed/)
  assert.match(await deploy('shared@2'), /^Prompt shared@2 is deployed in/, 'a name comes first')
  for (const share of ['100%', '-1', '1.5', 'x', '']) {
    const { code, stderr } = await server.tacho(['prompts', 'deploy', 'shared', ...STAGING, `--share=${share}`])
    assert.equal(code, 2, share)
    assert.match(stderr, /--share must be a whole percentage from 0 to 99/)
  }
  for (const name of ['shared', 'shared@2']) await done('prompts', 'undeploy', name, ...STAGING)
})

test('a prompt can be given on the command line', async () => {
  assert.match(await done('prompts', 'create', 'inline', '--content', 'Be kind.'), /version 1/)
  assert.match(await done('prompts', 'push', 'inline', '--content', 'Be brief.'), /^Version 2 of inline/)
  assert.equal(await done('prompts', 'show', 'inline'), 'Be brief.')
  for (const args of [[], ['--content', 'x', '--file', '-'], ['--content', '']]) {
    assert.equal((await server.tacho(['prompts', 'create', 'other', ...args])).code, 2, args.join(' '))
  }
})

test('a prompt is created from a file, versioned, deployed and rolled back', async () => {
  const file = fileOf('greeting.md', 'Be kind.\nAnswer in English.\nBye.')
  assert.match(await done('prompts', 'create', 'greeting', '--file', file), /version 1\. It is not deployed yet\.\n$/)
  fileOf('greeting.md', 'Be kind.\nAnswer in German.\nBye.')
  assert.match(await done('prompts', 'push', 'greeting', '--file', file, '--note', 'German'), /^Version 2 of greeting/)
  assert.match(
    await done('prompts', 'push', 'greeting', '--file', file),
    /already has this content; nothing was written/,
  )
  assert.equal(
    await done('prompts', 'diff', 'greeting'),
    'content:\n  Be kind.\n- Answer in English.\n+ Answer in German.\n  Bye.\n',
  )
  assert.equal(await done('prompts', 'show', 'greeting', '--number', '1'), 'Be kind.\nAnswer in English.\nBye.')
  assert.match(await done('prompts', 'show', 'greeting', '--history'), /\n2 .* German\n1 /)
  await done('prompts', 'deploy', 'greeting', '--number', '1', ...STAGING)
  const deployed = await done('prompts', 'deploy', 'greeting', ...STAGING)
  assert.match(deployed, /^Prompt greeting is deployed in default\/staging with version 2 \(before: 1\)\.\n/)
  assert.match(deployed, /revision [0-9a-f]{12}; --json has all of it\.\n$/)
  assert.match(await done('prompts', 'deploy', 'greeting', ...STAGING), /is already deployed there/)
  assert.match(await done('prompts', 'rollback', 'greeting', ...STAGING), /with version 1 \(before: 2\)/)
  assert.match(await done('prompts', 'list'), /^greeting +2 +staging 1 /m)
  assert.match(await done('prompts', 'undeploy', 'greeting', ...STAGING), /no longer deployed in/)
  assert.match(await done('prompts', 'rename', 'greeting', 'welcome'), /^Prompt greeting is now called welcome/)
  assert.match(await done('prompts', 'archive', 'welcome'), /^Prompt welcome is archived/)
  assert.doesNotMatch(await done('prompts', 'list'), /welcome/)
  assert.match(await done('prompts', 'restore', 'welcome'), /^Prompt welcome is in use again/)
  await done('prompts', 'rename', 'welcome', 'greeting')
})

test('a simulation begins with its warnings, and lists only the tools with hits', async () => {
  const call = (toolName: string, n: number) => ({
    eventId: `sim-${toolName}-${n}`,
    clientId: 'c',
    runId: 'simulated',
    agentName: 'agent',
    eventType: 'TOOL_CALL',
    label: toolName,
    timestamp: Date.now(),
    payload: { toolName, input: { amount: n } },
  })
  const events = [call('pay', 1), call('pay', 2), call('look', 3)]
  const made = await done('keys', 'create', ...STAGING, '--name', 'k', '--scopes', 'events:write', '--json')
  const { key } = JSON.parse(made) as { key: string }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    body: JSON.stringify(events),
  })
  assert.equal(reply.status, 200)
  const condition = 'tool.name == "pay" && !has(tool.input.curency)'
  const text = await done('policies', 'simulate', '--condition', condition, '--action', 'BLOCK', ...STAGING)
  assert.match(text, /^Warning: .*has tool\.input\.curency.*\.\nIt would block 2 of /)
  assert.match(text, /^pay +2 +2$/m)
  const misspelled = ['policies', 'check', '--condition', 'tool.name == "pay" && tool.input.amout > 5.0']
  assert.equal(await done(...misspelled), 'condition: valid\n')
  assert.equal(
    await done(...misspelled, ...STAGING),
    'condition: valid\ncondition: warning: No recorded call of pay has tool.input.amout; tool.input.amount is in 2 of 2\n',
  )
  // Both commands warn about the field before the policy is in force, and succeed.
  const field = 'No recorded call of pay has tool.input.amout; tool.input.amount is in 2 of 2'
  const policy = 'severity: LOW, action: WARN'
  const file = fileOf(
    'compared.yaml',
    `policies:
  spelled: { ${policy}, condition: 'tool.name == "pay" && tool.input.amout > 5.0' }
  unmatched: { ${policy}, condition: 'tool.name == "payy"' }
environments: { staging: { policies: [spelled, unmatched] } }
`,
  )
  const dry = await server.tacho(['apply', '-f', file, '--dry-run'])
  assert.equal(
    dry.stderr.replace('Nothing was changed.\n', ''),
    `Warning: spelled in staging: ${field}\nWarning: unmatched in staging: No recorded call is of payy; did you mean pay?\n`,
  )
  assert.equal((await server.tacho(['apply', '-f', file, '--yes'])).code, 0)
  await done('policies', 'undeploy', 'spelled', ...STAGING)
  const deployed = await server.tacho(['policies', 'deploy', 'spelled', ...STAGING])
  assert.deepEqual([deployed.code, deployed.stderr], [0, `Warning: spelled in default/staging: ${field}\n`])
  for (const name of ['spelled', 'unmatched']) await done('policies', 'undeploy', name, ...STAGING)
  assert.doesNotMatch(text, /^look /m)
  assert.match(await done('policies', 'simulate', '--help'), /--severity[\s\S]*MEDIUM\s+for a\s+condition/)
})

test('a policy is created from a file, versioned, deployed and promoted', async () => {
  const file = fileOf('refunds.cel', 'tool.name == "refund"\n')
  await done('policies', 'create', 'refunds', '--file', file, '--severity', 'high', '--action', 'BLOCK')
  assert.match(await done('policies', 'push', 'refunds', '--action', 'WARN', '--note', 'Softer'), /^Version 2/)
  assert.equal(await done('policies', 'diff', 'refunds'), 'action:\n- BLOCK\n+ WARN\n')
  const shown = JSON.parse(await done('policies', 'show', 'refunds', '--json')) as Record<string, unknown>
  assert.deepEqual(
    [shown['condition'], shown['severity'], shown['action'], shown['note']],
    ['tool.name == "refund"', 'HIGH', 'WARN', 'Softer'],
  )
  await done('policies', 'deploy', 'refunds', ...STAGING)
  const places = ['--from', 'default/staging', '--to', 'default/development']
  assert.match(
    await done('policies', 'promote', 'refunds', ...places),
    /deployed in default\/development with version 2/,
  )
  assert.match(await done('policies', 'promote', '--all', ...places), /The same versions are already deployed/)
  assert.match(await done('policies', 'list'), /^refunds +2 +development 2, staging 2 +HIGH +WARN/m)
  for (const [act, expected] of [
    [['deploy', 'refunds@1', '--replaces', '1'], 'version 1'],
    [['undeploy', 'refunds', '--replaces', 'none'], 'no version'],
  ] as const) {
    const { code, stderr } = await server.tacho(['policies', ...act, ...STAGING])
    assert.equal(code, 1)
    assert.ok(
      stderr.startsWith(`tacho: Expected ${expected} of the policy refunds in force, but version 2 is.`),
      stderr,
    )
  }
  await done('policies', 'deploy', 'refunds@1', '--replaces', '2', ...STAGING)
  await done('policies', 'undeploy', 'refunds', '--replaces', '1', ...STAGING)
  await done('policies', 'deploy', 'refunds', '--replaces', 'none', ...STAGING)
  await done('policies', 'push', 'refunds', '--action', 'ALLOW', '--note', 'A draft')
  const inForce = await done('policies', 'show', 'refunds')
  assert.match(
    inForce,
    /version 2 +HIGH +WARN\nIn force +development 2, staging 2\nNewest +version 3; --number 3 shows it/,
  )
  assert.match(await done('policies', 'show', 'refunds', '--number', '3'), /version 3 +HIGH +ALLOW\nIn force/)
})

test('a policy gets a message beside its description; each keeps its value when the other changes', async () => {
  const push = async (...args: string[]) => {
    await done('policies', 'push', 'speaking', ...args)
    const shown = await done('policies', 'show', 'speaking')
    return [/^Description +(.*)$/m.exec(shown)?.[1], /^Message +(.*)$/m.exec(shown)?.[1]]
  }
  const said = 'over 500 needs finance: ask ada'
  const rule = ['--condition', 'true', '--severity', 'LOW', '--action', 'WARN']
  await done('policies', 'create', 'speaking', ...rule, '--description', 'Refunds.', '--message', said)
  const { description } = JSON.parse(await done('policies', 'show', 'speaking', '--json')) as Record<string, unknown>
  assert.equal(description, `Refunds.\nMessage: ${said}`)
  assert.deepEqual(await push('--description', 'Large refunds.'), ['Large refunds.', said])
  assert.deepEqual(await push('--message', 'ask bob'), ['Large refunds.', 'ask bob'])
  assert.deepEqual(await push('--message', ''), ['Large refunds.', undefined])
  const long = await server.tacho(['policies', 'push', 'speaking', '--message', 'x'.repeat(501)])
  assert.match(long.stderr, /--message must have at most 500 characters/)
})

test('check needs no server, shows the line with a caret, and sets the exit code', async () => {
  const [good, bad] = [fileOf('good.cel', 'true\n'), fileOf('bad.cel', 'tool.name == "a" &&\n\ttool.nam == "b"\n')]
  const offline = (...args: string[]) => runCommand(['policies', 'check', ...args], { TACHO_URL: 'http://127.0.0.1:9' })
  assert.deepEqual(await offline(good), { code: 0, stdout: `${good}: valid\n`, stderr: '' })
  const both = await offline(good, bad)
  assert.equal(both.code, 1)
  assert.match(both.stdout, /bad\.cel:2:2: .*nam.*\n {3}tool\.nam == "b"\n {3}\^~~~~~~~\n$/)
  const { items } = JSON.parse((await offline(bad, '--json')).stdout) as {
    items: { ok: boolean; faults: { position: { line: number; column: number } }[] }[]
  }
  assert.deepEqual([items[0]?.ok, items[0]?.faults[0]?.position.line], [false, 2])
  const stdin = await runCommand(['policies', 'check', '-'], {}, 'amount > 1')
  assert.match(stdin.stdout, /^stdin:1:1: /)
  assert.equal((await offline('--condition', 'true')).code, 0)
  const cost = await offline('--condition', 'run.cost > 5.0')
  assert.match(cost.stdout, /^condition: valid\ncondition: note: run\.cost .* stays 0 if its integration records none/)
  assert.equal((await offline()).code, 2)
})

test('wrong usage fails before any request, and unknown names are reported', async () => {
  const bad = fileOf('bad.cel', 'tool.')
  for (const [args, message] of [
    [['prompts', 'create', 'x', '--file', 'none.md'], /"none\.md" does not exist/],
    [['prompts', 'show', 'never'], /Unknown prompt "never"/],
    [['policies', 'show', 'never'], /Unknown policy "never"/],
    [['policies', 'create', 'x', '--condition', 'true'], /--severity and --action/],
    [
      ['policies', 'create', 'x', '--file', bad, '--severity', 'LOW', '--action', 'WARN'],
      /The condition is invalid\.\n.*bad\.cel:1:/,
    ],
    [
      ['policies', 'create', 'x', '--condition', 'true', '--severity', 'X', '--action', 'WARN'],
      /It must be one of LOW/,
    ],
    [['policies', 'deploy', 'refunds', ...STAGING, '--number', 'x'], /--number must be a number/],
    [['policies', 'deploy', 'refunds'], /More than one environment exists/],
    [['policies', 'promote', '--from', 'default/staging', '--to', 'default/development'], /or --all/],
    [['policies', 'simulate', ...STAGING], /Give a policy, or a condition/],
    [['policies', 'simulate', ...STAGING, '--condition', 'true'], /Give --action/],
  ] as const) {
    const { code, stderr } = await server.tacho(args)
    assert.equal(code, 2, `${args.join(' ')}: ${stderr}`)
    assert.match(stderr, message)
  }
  const unknown = await server.tacho(['policies', 'deploy', 'refunds', ...STAGING, '--number', '99'])
  assert.deepEqual([unknown.code, unknown.stdout], [1, ''])
  assert.match(unknown.stderr, /no policy refunds with version 99/)
})

test(
  'a simulation over the real runs counts what a plain script counts',
  { skip: withoutRealTranscripts },
  async () => {
    const tools = ['cancel_reservation', 'update_reservation_flights']
    const expected = { calls: 0, hits: 0, runs: 0, byTool: new Map<string, number>() }
    for (const line of readFileSync(REAL_TRANSCRIPTS, 'utf8').trimEnd().split('\n')) {
      interface Message {
        tool_calls?: { function: { name: string } }[] | null
      }
      const { messages } = JSON.parse(line) as { messages: Message[] }
      const names = messages.flatMap(({ tool_calls: calls }) => (calls ?? []).map((call) => call.function.name))
      const hits = names.filter((name) => tools.includes(name))
      expected.calls += names.length
      expected.hits += hits.length
      if (hits.length > 0) expected.runs += 1
      for (const name of hits) expected.byTool.set(name, (expected.byTool.get(name) ?? 0) + 1)
    }
    await done('import', REAL_TRANSCRIPTS)
    const condition = `tool.name in ${JSON.stringify(tools)}`
    const line = [
      'policies',
      'simulate',
      '--environment',
      'default/development',
      '--condition',
      condition,
      '--days',
      '30',
    ]
    const spoken = await done(...line, '--action', 'REQUIRE_APPROVAL')
    const share = `${((expected.hits / expected.calls) * 100).toFixed(1)} %`
    const sentence = `It would ask a person about ${expected.hits} of ${expected.calls} recorded tool calls (${share}), in ${expected.runs} runs.`
    assert.ok(spoken.startsWith(sentence), spoken)
    const { result } = JSON.parse(await done(...line, '--action', 'REQUIRE_APPROVAL', '--json')) as Simulation
    assert.deepEqual(
      [result?.calls, result?.asked, result?.blocked, result?.runs, result?.failures],
      [expected.calls, expected.hits, 0, expected.runs, 0],
    )
    const byTool = new Map(result?.tools.filter(({ hits }) => hits > 0).map(({ toolName, hits }) => [toolName, hits]))
    assert.deepEqual(byTool, expected.byTool)
  },
)

test('the clients of a configuration are listed with what each has', async () => {
  const noClients = await done('environments', 'clients', ...STAGING)
  assert.match(noClients, /^0 of 0 clients have revision [0-9a-f]{12}; 0 silent\.\n$/)
  const told = JSON.parse(await done('environments', 'clients', ...STAGING, '--standing', 'BEHIND', '--json')) as object
  assert.deepEqual(Object.keys(told), ['revision', 'counts', 'items'])
})
