import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Approval } from '@tacho/contract/approvals/approval.ts'
import type {
  ApprovalCard,
  ApprovalDetail,
  ApprovalGroups,
  OperatorApproval,
} from '@tacho/contract/approvals/operator-approval.ts'
import type { ApprovalInHindsight } from '@tacho/contract/approvals/aftermath.ts'
import type { DecisionOutcome } from '@tacho/contract/approvals/approval-decision.ts'
import { runScreen } from '../src/approvals/live.ts'
import { inputHash } from '@tacho/policy/input/input-hash.ts'
import { operatorClient, Refused, type OperatorClient } from '../src/engine/operator-client.ts'
import { API_KEY, OPERATOR_TOKEN, startServer, startTacho, type Ended } from './tacho.ts'
import { eventually } from '../../server/test/setup/eventually.ts'

const HASH = 'ab'.repeat(32)
const server = await startServer()
after(() => server.stop())

const json = <Value>(...args: string[]) => server.json<Value>('approvals', ...args)
const text = (...args: string[]) => server.text('approvals', ...args)
const run = (...args: string[]): Promise<Ended> => server.tacho(['approvals', ...args])

let count = 0

/** Requests an approval as a client and returns its id. */
async function ask(fields: Record<string, unknown> = {}): Promise<string> {
  const reply = await fetch(`${server.url}/openapi/v1/firewall-approvals`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': API_KEY, 'x-service-client-id': 'cli' },
    body: JSON.stringify({ clientRequestId: `${++count}`, toolName: 'refund', inputHash: HASH, ...fields }),
  })
  assert.equal(reply.status, 201)
  return ((await reply.json()) as Approval).id
}

async function record(payload: object, runId: string, eventType = 'TOOL_CALL'): Promise<void> {
  const event = { eventId: `${++count}`, clientId: 'cli', runId, agentName: 'a', eventType, label: 'l' }
  const reply = await fetch(`${server.url}/openapi/v1/events/batch`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': API_KEY },
    body: JSON.stringify([{ ...event, timestamp: Date.now(), payload }]),
  })
  assert.equal(reply.status, 200)
}

test('hindsight says what became of closed requests, the newest first, and counts nothing that waits', async () => {
  const fields = { runId: 'hindsight', sessionId: 'hindsight' }
  const failed = await ask({ toolName: 'wire', ...fields })
  const avoided = await ask({ toolName: 'drop', ...fields })
  const waiting = await ask({ toolName: 'wait', ...fields })
  await run('approve', failed)
  await run('reject', avoided)
  await run('reject', waiting)
  await ask({ toolName: 'wait', inputHash: 'cd'.repeat(32), ...fields })
  await record({ toolName: 'wire', inputHash: HASH, approvalId: failed, error: { message: 'broke' } }, 'hindsight')
  await record({ toolName: 'drop', inputHash: 'ef'.repeat(32), output: 1 }, 'hindsight')
  const asked = ['hindsight', '--session', 'hindsight']
  const { items, hasMore } = await json<{ items: ApprovalInHindsight[]; hasMore: boolean }>(...asked)
  assert.deepEqual(
    items.map(({ approval, hindsight, call }) => [approval.id, hindsight, call?.toolName ?? null]),
    [
      [waiting, 'not_run', null],
      [avoided, 'another_way', 'drop'],
      [failed, 'failed', 'wire'],
    ],
  )
  assert.equal(hasMore, false)
  const printed = await text(...asked, '--from', '1h')
  assert.match(printed, /drop .*It did not run, but the same tool ran later with another input/)
  assert.match(printed, /wire .*It was approved, ran and failed/)
  assert.equal((await json<{ hasMore: boolean }>(...asked, '-n', '1')).hasMore, true)
  assert.match((await run('hindsight', '--tool', 'none of these')).stderr, /No matching closed requests/)
  assert.equal((await run('hindsight', '--status', 'PENDING')).code, 2)
})

test('list shows pending approvals by deadline; others on request, filtered and counted', async () => {
  const late = await ask({ toolName: 'list', agentId: 'bot', runId: 'r', reason: 'over \u001b[31m100' })
  const soon = await ask({ toolName: 'list', timeoutMs: 60_000 })
  const said = { action: 'REQUIRE_APPROVAL', toolName: 'list', inputHash: HASH, approvalId: late }
  await record({ ...said, input: { command: 'cat .env\u202e' } }, 'r', 'POLICY_DECISION')
  const { items, hasMore } = await json<{ items: ApprovalCard[]; hasMore: boolean }>('list', '--tool', 'list')
  assert.deepEqual([items.map(({ id }) => id), hasMore], [[soon, late], false])
  const first = await json<{ items: ApprovalCard[]; hasMore: boolean }>('list', '--tool', 'list', '-n', '1')
  assert.deepEqual([first.items.length, first.hasMore], [1, true])
  assert.match(
    await text('list', '--tool', 'list', '--agent', 'bot'),
    new RegExp(`PENDING +${late} +list +\\$ cat [.]env\\\\u202e +bot +r +expires in`),
  )
  const groups = await json<ApprovalGroups>('list', '--groups')
  assert.ok(groups.items.some(({ toolName, requests }) => toolName === 'list' && requests === 2))
  assert.match(await text('list', '--groups'), /OLDEST DEADLINE +REQUESTS[\s\S]* list +\$ cat [.]env/)
  await text('reject', late)
  assert.match(await text('list', '--tool', 'list', '--status', 'rejected'), new RegExp(`REJECTED +${late}`))
  const all = await json<{ items: ApprovalCard[] }>('list', '--tool', 'list', '--status', 'ALL')
  assert.equal(all.items.length, 2)
  assert.equal(await text('list', '--tool', 'no_such_tool'), '')
})

test('show prints all details, escaped, with what happened afterwards', async () => {
  const id = await ask({ toolName: 'show', runId: 'shown', reason: 'over \u001b[31m100' })
  assert.match(await text('show', id), /Why +over \\u001b\[31m100\n[\s\S]*Its run is not recorded/)
  await text('approve', id, '--reason', 'known')
  await record({ toolName: 'show', inputHash: HASH, approvalId: id, error: 'broke' }, 'shown')
  const shown = await text('show', id)
  assert.match(shown, /^APPROVED +show\n/)
  assert.match(shown, /Z  show \(error\)  The tool ran with the approved input; event /)
  assert.doesNotMatch(shown, /as_approved/)
  const { approval, calls } = await json<{ approval: ApprovalCard; calls: unknown[] }>('show', id)
  assert.deepEqual([approval.decisionReason, calls.length], ['known', 1])
})

test('an unknown approval is named, with the command that lists them', async () => {
  for (const id of ['nope', '019a0c44-3700-7686-a2e1-3c01640563f0']) {
    for (const verb of ['show', 'approve', 'reject']) {
      const { code, stdout, stderr } = await server.tacho(['approvals', verb, id])
      assert.deepEqual([code, stdout], [2, ''])
      assert.equal(
        stderr,
        `tacho: Unknown approval "${id}": \`tacho approvals list\` shows those of the environment.\n`,
      )
    }
  }
})

test('show prints the recorded input, escaped', async () => {
  const input = { amount: 500, note: 'a\u001b[31mb' }
  const hash = inputHash('see', input)
  const id = await ask({ toolName: 'see', runId: 'seen', inputHash: hash })
  assert.match(await text('show', id), /The client recorded no input for this approval\./)
  await record({ toolName: 'see', inputHash: hash, approvalId: id, input }, 'seen', 'POLICY_DECISION')
  const shown = await text('show', id)
  assert.match(shown, /Input, masked, as the client recorded it:\n  \{"amount":500,"note":"a\\u001b\[31mb"\}/)
  assert.match(shown, /^It matches what the agent asked for\.$/m)
  assert.doesNotMatch(shown, /Warning/)
  const lie = await ask({ toolName: 'see', runId: 'seen', inputHash: HASH })
  await record({ toolName: 'see', inputHash: HASH, approvalId: lie, input }, 'seen', 'POLICY_DECISION')
  assert.match(await text('show', lie), /Warning: the input DOES NOT MATCH what the agent asked for/)
  assert.match(await text('list', '--tool', 'see'), /DOES NOT MATCH/)
  assert.equal((await run('approve', lie)).code, 1)
  assert.match(await text('approve', lie, '--confirm-mismatch'), /APPROVED/)
  const cut = await ask({ toolName: 'see', runId: 'seen' })
  const payload = { toolName: 'see', inputHash: HASH, approvalId: cut, input, tachoShortened: {} }
  await record(payload, 'seen', 'POLICY_DECISION')
  assert.match(await text('show', cut), /Warning: the input was too large to record whole/)
  const { approval } = await json<{ approval: ApprovalDetail }>('show', id)
  assert.equal(approval.inputPreview?.json, JSON.stringify(input))
})

test('approve and reject store a reason; a decided approval is refused with its state', async () => {
  const [one, two] = [await ask(), await ask()]
  const approved = await json<OperatorApproval>('approve', one, '--reason', 'fine')
  assert.deepEqual([approved.status, approved.decisionReason], ['APPROVED', 'fine'])
  assert.match(await text('reject', two), new RegExp(`REJECTED +${two} +refund +cli +by first token`))
  const refused = await run('reject', one)
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /The approval is already APPROVED/)
})

test('several are decided together, by id or by tool and input; exit code 0 only if all were', async () => {
  const [one, two, three] = [await ask({ toolName: 'm' }), await ask({ toolName: 'm' }), await ask({ toolName: 'm' })]
  const { items } = await json<{ items: DecisionOutcome[] }>('approve', one, two)
  assert.deepEqual(
    items.map(({ id, outcome }) => [id, outcome]),
    [
      [one, 'decided'],
      [two, 'decided'],
    ],
  )
  const again = await run('reject', two, three)
  assert.equal(again.code, 1)
  assert.match(again.stdout, new RegExp(`APPROVED +${two} .*\\(not by this decision\\)\n.*REJECTED +${three}`))
  const four = await ask({ toolName: 'm' })
  const all = await json<{ items: DecisionOutcome[] }>('reject', '--tool', 'm', '--input', HASH.toUpperCase())
  assert.deepEqual(
    all.items.map(({ id }) => id),
    [four],
  )
})

test('a tool and input that no approval waits for are an error, not a decision', async () => {
  const { code, stdout, stderr } = await run('reject', '--tool', 'refund', '--input', 'ef'.repeat(32))
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /No approval of refund with this input is waiting/)
})

test('approval ids, or tool and input, are required', async () => {
  for (const args of [
    [],
    ['--tool', 'a'],
    ['--input', HASH],
    ['x', '--tool', 'a'],
    ['x', '--tool', 'a', '--input', HASH],
  ]) {
    assert.equal((await run('approve', ...args)).code, 2, args.join(' '))
  }
  assert.equal((await run('list', '--status', 'DONE')).code, 2)
})

test('watch prints a JSON line for each new or changed approval', async () => {
  const before = await ask({ toolName: 'watch' })
  const child = startTacho(['approvals', 'watch', '--json'], server.variables)
  assert.ok(child.stdout)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const untilTold = async (id: string, status: string): Promise<void> => {
    for (;;) {
      const { value, done } = await lines.next()
      assert.ok(!done)
      const told = JSON.parse(value) as OperatorApproval
      if (told.id === id && told.status === status) return
    }
  }
  await untilTold(before, 'PENDING')
  const fresh = await ask({ toolName: 'watch' })
  await untilTold(fresh, 'PENDING')
  await text('approve', before)
  await untilTold(before, 'APPROVED')
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
})

test('a request whose client withdrew it says so in the list, the detail and the screen for pipes, before a decision and after', async () => {
  const [id, other] = [await ask({ toolName: 'gone', runId: 'gone' }), await ask({ toolName: 'gone', runId: 'gone' })]
  const child = startTacho(['approvals', 'watch'], server.variables)
  assert.ok(child.stdout)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const untilTold = async (line: RegExp): Promise<void> => {
    for (;;) {
      const { value, done } = await lines.next()
      assert.ok(!done)
      if (line.test(value as string)) return
    }
  }
  await untilTold(new RegExp(`PENDING +${id} `))
  await record({ approvalId: id, toolName: 'gone', inputHash: HASH, reason: 'cancelled' }, 'gone', 'APPROVAL_WITHDRAWN')
  await untilTold(new RegExp(`WITHDRAWN +${id} `))
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed

  const listed = await text('list', '--tool', 'gone', '--status', 'ALL')
  assert.match(listed, new RegExp(`WITHDRAWN +${id} .*withdrawn: the call was cancelled; nothing will run`))
  assert.match(listed, new RegExp(`PENDING +${other} `))
  assert.match(await text('show', id), /^WITHDRAWN +gone\n/)
  const { items } = await json<{ items: ApprovalCard[] }>('list', '--tool', 'gone', '--status', 'ALL')
  const card = items.find((item) => item.id === id)
  assert.deepEqual([card?.status, card?.waiting.state, card?.waiting.reason], ['PENDING', 'withdrawn', 'cancelled'])
  // The decision is stored, and the output says that nothing runs.
  const { stdout, stderr } = await run('approve', id)
  assert.match(stdout + stderr, /nothing (will run|runs)/)
  assert.match(await text('show', id), /nothing (will run|runs)/)
})

async function emptyQueue(): Promise<{ client: OperatorClient; environmentId: string }> {
  const { items } = await json<{ items: { id: string }[] }>('list', '--status', 'PENDING', '--all')
  for (const { id } of items) await text('reject', id)
  const client = operatorClient(server.url, OPERATOR_TOKEN)
  const { items: workspaces } = await client.listWorkspaces()
  const { items: environments } = await client.listEnvironments({ params: { workspaceId: workspaces[0]?.id ?? '' } })
  return { client, environmentId: environments[0]?.id ?? '' }
}

test('the screen of watch asks what is true when the answer of a decision is lost, before a key decides again', async () => {
  const { client, environmentId } = await emptyQueue()
  const id = await ask({ toolName: 'lost', timeoutMs: 600_000 })
  const [input, output] = [new PassThrough(), new PassThrough()]
  let shown = ''
  output.setEncoding('utf8').on('data', (written: string) => (shown = written))
  const lost = new Refused(server.url, {
    ok: false,
    reason: 'timeout',
    code: null,
    status: null,
    cause: null,
    retryAfterMs: null,
    temporary: true,
  })
  const sent: string[] = []
  let isDown = false
  const unsure: OperatorClient = {
    ...client,
    decideApproval(given, options) {
      sent.push(JSON.stringify(given.body))
      isDown = sent.length === 1
      return isDown ? Promise.reject(lost) : client.decideApproval(given, options)
    },
    readApproval: (...given) => (isDown ? Promise.reject(lost) : client.readApproval(...given)),
  }
  const ended = runScreen(unsure, environmentId, { input, output })
  const shows = (part: string) => eventually(() => shown.includes(part), part)
  await shows('1 of 1')
  input.write('a')
  await shows('not known whether your decision was saved')
  input.write('r')
  await sleep(1_500)
  assert.deepEqual(sent, ['{"decision":"APPROVED"}'])
  isDown = false
  await shows('lost still waits: your decision was not saved.')
  input.write('r')
  await shows('lost was rejected.')
  input.write('q')
  assert.equal(await ended, false)
  assert.equal((await client.readApproval({ params: { environmentId, approvalId: id } })).status, 'REJECTED')
})

test('the screen of watch shows the recorded input, and one key decides', async () => {
  const { client, environmentId } = await emptyQueue()
  const recorded = { to: 'Ada\u001b[2J' }
  const hash = inputHash('first', recorded)
  const [one, two, elsewhere] = [
    await ask({ toolName: 'first', runId: 'screen', inputHash: hash, timeoutMs: 600_000 }),
    await ask({ toolName: 'second', timeoutMs: 700_000 }),
    await ask({ toolName: 'third', inputHash: 'cd'.repeat(32), timeoutMs: 800_000 }),
  ]
  const [input, output] = [new PassThrough(), new PassThrough()]
  let shown = ''
  output.setEncoding('utf8').on('data', (text: string) => (shown = text))
  const ended = runScreen(client, environmentId, { input, output })
  const shows = (part: string) => eventually(() => shown.includes(part), part)
  await shows('1 of 3')
  // A client records the input just after its request.
  const payload = { toolName: 'first', inputHash: hash, approvalId: one, input: recorded }
  await record(payload, 'screen', 'POLICY_DECISION')
  input.write('jk')
  await shows('"to": "Ada\\u001b[2J"')
  input.write('A')
  await shows('Reason to approve')
  input.write('looks fine\r')
  await shows('first was approved.')
  await shows('1 of 2')
  input.write('r')
  await shows('second was rejected.')
  await text('approve', elsewhere)
  await shows('third was approved by first token.')
  const last = await ask({ toolName: 'fourth' })
  const twin = await ask({ toolName: 'fourth' })
  await shows('×2')
  input.write('g')
  await shows('Decide all 2 with this input')
  // For a second after the third request left the screen, keys do not decide anything.
  await eventually(() => {
    if (!shown.includes('2 of fourth were approved.')) input.write('a')
    return shown.includes('2 of fourth were approved.')
  }, 'both approved')
  input.write('q')
  assert.equal(await ended, false)
  const states = await Promise.all(
    [one, two, elsewhere, last, twin].map((approvalId) =>
      client.readApproval({ params: { environmentId, approvalId } }),
    ),
  )
  assert.deepEqual(
    states.map(({ status, decisionReason }) => [status, decisionReason]),
    [
      ['APPROVED', 'looks fine'],
      ['REJECTED', null],
      ['APPROVED', null],
      ['APPROVED', null],
      ['APPROVED', null],
    ],
  )
})
