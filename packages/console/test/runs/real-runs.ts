/** The pages on runs of real agents. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REAL_TRANSCRIPTS, withoutRealTranscripts } from '../../../cli/test/real-transcripts.ts'
import { runCommand } from '../../../cli/test/tacho.ts'
import { assertLooks, type TestConsole } from '../setup/console.ts'
import { step } from './step.ts'

export function testRealRuns(tacho: () => TestConsole): void {
  test('real runs are accessible and fit, light, dark and on a phone', { skip: withoutRealTranscripts }, async () => {
    await importRealRuns()
    const { page, close } = await tacho().open(tacho().home)
    await page.getByRole('heading', { name: 'Newest runs' }).waitFor()
    await assertLooks(page, 'overview')
    await page.goto(`${tacho().home}/runs?agent=Airline`)
    await page.getByRole('row').nth(3).getByRole('link').click()
    for (const [key, view] of [
      ['t', 'Timeline'],
      ['c', 'Transcript'],
      ['b', 'Steps'],
    ] as const) {
      await page.keyboard.press(key)
      await page.getByRole('list', { name: view }).getByRole('listitem').nth(2).waitFor()
      await assertLooks(page, view)
    }
    await page.keyboard.press('j')
    await step(page).getByText('Event id').waitFor()
    await assertLooks(page, 'step')
    await close()
  })

  async function importRealRuns(): Promise<void> {
    const { url, apiKey, operatorToken } = tacho().service
    const variables = { TACHO_URL: url, TACHO_API_KEY: apiKey, TACHO_OPERATOR_TOKEN: operatorToken }
    const args = ['import', REAL_TRANSCRIPTS, '--agent-name', 'Airline', '--field-outcome', 'reward']
    const { code, stderr } = await runCommand(args, variables)
    assert.equal(code, 0, stderr)
  }
}
