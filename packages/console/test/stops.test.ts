/** Stops: made on the pages of an agent, a session and a run, shown on every page while in effect, and ended. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { newPerson } from '../../server/test/http/people/browser.ts'
import { configurationCalls, type ConfigurationCalls } from '../../server/test/setup/configuration-service.ts'
import { event } from '../../server/test/setup/service.ts'
import { withoutChromium } from './setup/chromium.ts'
import { assertLooks, HARM, startConsole, type TestConsole } from './setup/console.ts'

describe('stops', { skip: withoutChromium }, () => {
  let tacho: TestConsole
  let calls: ConfigurationCalls
  before(async () => {
    tacho = await startConsole()
    calls = await configurationCalls(tacho.service)
    const of = { agentId: 'support', agentName: 'Support', sessionId: 'chat-81' }
    await tacho.service.record([event({ runId: 'pays-twice', ...of })])
    await calls.load({ 'x-service-client-id': 'support-1' })
  })
  after(() => tacho.close())

  test('an agent is stopped from its page, shows it on every page, and goes on from the Rollout page', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/agents/support`)
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Stop this agent…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Every guarded call of this agent is blocked').waitFor()
    assert.equal(await dialog.getByRole('button', { name: 'Stop' }).isDisabled(), true)
    await dialog.getByLabel('Reason').fill(`It pays twice ${HARM}`)
    await assertLooks(page, 'stopping an agent')
    await dialog.getByRole('button', { name: 'Stop' }).click()
    await dialog.getByRole('heading', { name: 'Agent support is stopped' }).waitFor()
    await calls.load({ 'x-service-client-id': 'support-1' })
    await dialog.getByText('Not confirmed: support-1').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    const notes = page.getByRole('list', { name: 'Stops' })
    await notes.getByText('It pays twice').waitFor()
    await page.goto(`${tacho.home}/runs`)
    const line = page.getByRole('complementary', { name: 'Stopped' })
    await line.getByText('It pays twice').waitFor()
    await assertLooks(page, 'a stop on every page')
    await line.getByRole('link', { name: 'Stops' }).click()
    const etag = (await calls.load({ 'x-service-client-id': 'support-1' })).headers.get('etag') ?? ''
    await calls.load({ 'x-service-client-id': 'support-1', 'if-none-match': etag })
    await page.getByText('Confirmed by 1 of 1 client.').waitFor()
    await assertLooks(page, 'stops in effect')
    await page.getByRole('button', { name: 'Resume Agent support' }).click()
    await dialog.getByLabel('Why it may go on').fill('The prompt is repaired')
    await dialog.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('Nothing is stopped.').waitFor()
    await line.waitFor({ state: 'detached' })
    await close()
  })

  test('the page of a run shows the stops that covered it, also when they have ended; a viewer cannot stop', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/runs/pays-twice`)
    const notes = page.getByRole('list', { name: 'Stops' })
    await notes.getByText('The prompt is repaired').waitFor()
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Stop this run…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('It loops')
    await dialog.getByRole('button', { name: 'Stop' }).click()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await notes.getByText('It loops').waitFor()
    await assertLooks(page, 'a run that was stopped')
    await page.goto(`${tacho.home}/sessions/chat-81`)
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Stop this session…' }).click()
    await dialog.getByLabel('Reason').fill('A user abuses it')
    await dialog.getByRole('button', { name: 'Stop' }).click()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await notes.getByText('A user abuses it').waitFor()
    await close()
    const viewer = await newPerson(tacho.service, 'vera@example.com', 'viewer', calls.workspaceId)
    const seen = await tacho.open(`${tacho.home}/rollout`, { as: viewer })
    await seen.page.getByText('A user abuses it').waitFor()
    assert.equal(await seen.page.getByRole('button', { name: /Stop…|Resume/ }).count(), 0)
    await seen.close()
  })

  test('the whole environment is stopped from the Rollout page, which has the labels of tools too; the dialog says what nobody has recorded', async () => {
    const { page, close } = await tacho.open(`${tacho.home}/rollout`)
    const dialog = page.getByRole('dialog')
    const stop = async (what: string, target: string | null) => {
      await page.getByRole('button', { name: 'Stop…' }).click()
      await dialog.getByLabel('What').selectOption(what)
      if (target !== null) await dialog.getByLabel('Id or name').fill(target)
      await dialog.getByLabel('Reason').fill('Incident 81')
      await dialog.getByRole('button', { name: 'Stop', exact: true }).click()
    }
    await stop('agent', 'suport')
    await dialog.getByText('has recorded no such agent').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await stop('environment', null)
    await dialog.getByRole('heading', { name: 'This environment is stopped' }).waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('complementary', { name: 'Stopped' }).getByText('This environment').waitFor()
    await page.getByRole('link', { name: 'All 2 stops' }).waitFor()
    await page.getByText('No tool has labels').waitFor()
    const body = { labels: [{ tool: 'read_*', output: ['untrusted'] }] }
    const path = `/environments/${tacho.service.environmentId}/tool-labels/change`
    assert.equal((await tacho.service.operator(path, { body })).status, 200)
    await page.reload()
    await page.getByRole('table', { name: 'Labels of tools' }).getByText('read_*').waitFor()
    await assertLooks(page, 'labels of tools')
    await close()
  })
})
