/** The story of a coding agent's session: a recording of the real Claude Code, and harmful payloads. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { approvalCalls } from '../../server/test/setup/approval-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

const RECORDING = fileURLToPath(new URL('../../guards/test/hook/claude-code-session.json', import.meta.url))
interface Recorded {
  after: number
  eventType: string
  label: string
  parentSpanId: string | null
  payload: Record<string, unknown>
}
const session = JSON.parse(readFileSync(RECORDING, 'utf8')) as Recorded[]
const WIDE = { viewport: { width: 1440, height: 900 } }

describe('story of a coding agent', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  before(async () => {
    tacho = await startConsole()
  })
  after(() => tacho.close())

  /** Records the session; a person rejected its push. */
  async function record(runId: string): Promise<void> {
    const start = Date.now() - 60_000
    const calls = approvalCalls(tacho.service)
    const inputHash = 'ab'.repeat(32)
    const { body } = await calls.ask({ runId, toolName: 'Bash', inputHash, policyId: 'destructive-git' })
    await calls.decide(body.id, 'REJECTED', 'Not on Fridays: ask Ada.')
    let numbered = 0
    const events = session.map(({ after, payload, ...rest }, at) => {
      const isPush = JSON.stringify(payload['policyIds']) === '["destructive-git"]'
      const ids = { eventId: `${runId}-${at}`, runId, spanId: `span-${at}`, agentName: 'claude-code' }
      return event({
        ...ids,
        ...rest,
        // Only some events have numbers, as in hooks, where only those of the SDK have them.
        ...(rest.eventType === 'POLICY_DECISION' && { n: `k3fa9${++numbered}` }),
        payload: isPush ? { ...payload, approvalId: body.id } : payload,
        timestamp: start + after,
      })
    })
    assert.equal((await tacho.service.record(events)).body.accepted, events.length)
  }

  test('the head does not doubt a session of hooks, and times above the timeline do not overlap beside a step', async () => {
    await record('head')
    const { page, close } = await tacho.open(`${tacho.home}/runs/head`, WIDE)
    await page.getByText('$ ls -la && cat src/price.ts').waitFor()
    assert.equal(await page.getByText('not known').count(), 0)
    const times = page.locator('[aria-hidden] > span > span.tabular').filter({ visible: true })
    assert.equal(await times.count(), 5)
    await page.keyboard.press('j')
    await page.getByRole('complementary', { name: 'Step' }).waitFor()
    const boxes = await times.evaluateAll((each) => each.map((time) => time.getBoundingClientRect()))
    assert.equal(boxes.length, 3, 'those that have room')
    for (const [at, { left }] of boxes.entries()) assert.ok(left >= (boxes[at - 1]?.right ?? 0), `time ${at}`)
    await close()
  })

  test('prompt, commands with output, edits as differences, refusals with their reason, a sub-agent as a branch', async () => {
    await record('story')
    const { page, close } = await tacho.open(`${tacho.home}/runs/story`, WIDE)
    // The timeline names commands and files.
    await page.getByText('$ ls -la && cat src/price.ts').waitFor()
    await page.getByText('/home/me/shop/src/price.ts +2 −1').waitFor()
    await assertLooks(page, 'story timeline')
    await page.keyboard.press('c')
    await page.getByRole('list', { name: 'Transcript' }).getByText('Germany has 19 %, all others 20 %.').waitFor()
    await page.getByRole('group', { name: 'Output' }).first().getByText('drwxr-xr-x').waitFor()
    await assertLooks(page, 'story')
    // Go through the steps one by one, because the page contains only visible rows.
    let at = -1
    const seen = async (text: string) => {
      const index = session.findIndex(({ payload }) =>
        JSON.stringify(payload).includes(JSON.stringify(text).slice(1, -1)),
      )
      while (at < index) {
        await page.keyboard.press('j')
        const inspector = page.getByRole('complementary', { name: 'Step' })
        await inspector.getByText(`story-${++at}`, { exact: true }).waitFor()
      }
      return page.locator('[role=listitem][aria-current=step]')
    }
    const closeStep = async () => {
      await page.keyboard.press('Escape')
      await page.getByRole('complementary', { name: 'Step' }).waitFor({ state: 'detached' })
      at = -1
    }
    const inBranch = await seen('grep -rn "price" src | head')
    await inBranch.getByText('sub-agent').waitFor()
    const edit = await seen('return amount * (1 + rate)')
    const changes = edit.getByLabel('Changes of /home/me/shop/src/price.ts')
    await changes.getByText('return amount * 1.19').waitFor()
    assert.match(await edit.innerText(), /\+2\s−1/)
    await closeStep()
    await assertLooks(page, 'story edit')
    const failed = await seen('Exit code 3')
    await failed.getByText('failed').waitFor()
    assert.ok(!(await failed.innerText()).includes('ok 40'))
    await failed.getByRole('button', { name: /Show all/ }).click()
    // Colour codes of terminals are removed, and a tag is shown as text.
    await failed.getByText('not ok 61 <img src=x onerror=alert(1)>').waitFor()
    const push = await seen('git push --force origin main')
    await push.getByText('by destructive-git').waitFor()
    await push.getByRole('link', { name: 'Rejected' }).waitFor()
    await push.getByText('Not on Fridays: ask Ada.').waitFor()
    const settings = await seen('disableAllHooks')
    await settings.getByText('BLOCK').waitFor()
    await (await seen('Next: ask somebody to push.')).getByText('Next: ask somebody to push.').waitFor()
    await closeStep()
    await assertLooks(page, 'story end')
    await close()
  })

  test('large and hostile calls are text, bounded in the page', async () => {
    const lines = Array.from({ length: 12_000 }, (_, at) => `line ${at}`).join('\n')
    const payloads = [
      {
        toolName: HARM,
        subagent: HARM,
        input: { command: HARM },
        output: { stdout: `${HARM}\u001b[2J`, stderr: lines },
      },
      { toolName: 'Edit', input: { file_path: HARM, old_string: 'x'.repeat(50_000), new_string: lines } },
      {
        toolName: 'Edit',
        input: { path: 'a', edits: [{ oldText: HARM }, null, 7] },
        output: { structuredPatch: [{ lines: [HARM, 7, null] }] },
      },
      {
        toolName: 'apply_patch',
        input: { command: `*** Begin Patch\n*** Update File: ${HARM}\n@@\n-${HARM}\n+b` },
        error: HARM,
      },
    ]
    const events = payloads.map((payload, at) =>
      event({
        eventId: `hostile-${at}`,
        runId: 'hostile',
        eventType: 'TOOL_CALL',
        label: 'call',
        payload,
        timestamp: Date.now() - 1_000 + at,
      }),
    )
    assert.equal((await tacho.service.record(events)).body.accepted, events.length)
    const { page, close } = await tacho.open(`${tacho.home}/runs/hostile?view=transcript`, WIDE)
    const edit = page.getByRole('listitem').filter({ hasText: '+12000' })
    const rows = edit.getByLabel(/^Changes of/).locator('> div')
    const more = edit.getByRole('button', { name: 'Show 11,977 more lines' })
    await more.waitFor()
    assert.equal(await rows.count(), 24)
    await more.click()
    await edit.getByText('10,001 more lines in the payload.').waitFor()
    assert.equal(await rows.count(), 2_000)
    for (const { eventId } of events) {
      await page.keyboard.press('j')
      await page.getByRole('complementary', { name: 'Step' }).getByText(String(eventId), { exact: true }).waitFor()
    }
    assert.equal(await page.locator('img, #root script').count(), 0)
    assert.notEqual(await page.title(), '1')
    await close()
  })
})
