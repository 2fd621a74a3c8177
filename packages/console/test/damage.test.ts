/** Damaged rows are marked in lists and on pages, and intact rows are shown beside them. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import Database from 'better-sqlite3'
import { startConsole, type TestConsole } from './setup/console.ts'
import { withoutChromium } from './setup/chromium.ts'

describe('damage in the store', { skip: withoutChromium }, () => {
  let tacho: TestConsole

  before(async () => {
    tacho = await startConsole({ webhookNetworks: '127.0.0.0/8' })
    const { body } = await tacho.service.operator<{ items: { id: string }[] }>('/workspaces')
    workspace = `/workspaces/${body.items[0]?.id}`
  })
  after(() => tacho.close())

  const place = () => `/environments/${tacho.service.environmentId}`
  let workspace = ''

  async function make(address: string, body: object): Promise<Record<string, string>> {
    const answer = await tacho.service.operator<Record<string, string>>(address, { body })
    assert.ok(answer.status < 300, answer.text)
    return answer.body
  }

  function damage(statements: string): void {
    const db = new Database(path.join(tacho.service.directory, 'tacho.db'))
    db.exec(statements)
    db.close()
  }

  async function fill() {
    const ids: Record<string, string> = {}
    for (const name of ['hurt', 'whole']) {
      const prompt = await make(`${workspace}/prompts`, { name, content: `Be kind, ${name}` })
      await make(`${workspace}/policies`, {
        policyId: name,
        condition: 'tool.name == "x"',
        severity: 'LOW',
        action: 'WARN',
      })
      const items = [
        { kind: 'policy', id: name, version: '1' },
        { kind: 'prompt', id: prompt['promptId'], version: '1' },
      ]
      await make(`${place()}/deployments`, { items })
      await make(`${place()}/alerts`, { name, kind: 'cost', threshold: 5 })
      await make(`${place()}/webhooks`, { url: `http://127.0.0.1:9/${name}` })
      await make(`${workspace}/prices/set`, { model: name, input: 1, output: 2 })
      ids[name] = prompt['promptId'] ?? ''
    }
    await make(`${place()}/retention/change`, { runDays: 90 })
    await make(`${place()}/stalled-rule/change`, { idleMinutes: 60, closeAs: 'FAILED' })
    return ids
  }

  test('is marked for prompts, policies, deployments, alerts, webhooks, prices, retention and the stalled rule', async () => {
    const { hurt = '' } = await fill()
    damage(`UPDATE prompt_versions SET content = replace(content, 'kind', 'mind') WHERE prompt_id = '${hurt}';
      UPDATE policy_versions SET condition = '1 == 1' WHERE policy_id = 'hurt';
      UPDATE deployments SET version = 2 WHERE item_id = 'hurt';
      UPDATE configurations SET body = replace(body, 'Be kind', 'Be mind');
      UPDATE alerts SET rule = replace(rule, '5', '9') WHERE rule LIKE '%hurt%';
      UPDATE webhooks SET url = replace(url, 'hurt', 'hurd') WHERE url LIKE '%hurt%';
      UPDATE prices SET rates = '{"input":9,"output":9}' WHERE model = 'hurt';
      UPDATE retention_settings SET run_days = 1;
      UPDATE stalled_rules SET idle_minutes = 6`)
    const { page, close } = await tacho.open()
    const row = (name: string) => page.getByRole('row').filter({ hasText: name })
    const marks = async (address: string, whole: string) => {
      await page.goto(`${tacho.home}${address}`)
      await row(whole).first().waitFor()
      await page.getByText('Damaged', { exact: true }).first().waitFor()
      assert.equal(
        await row(whole)
          .first()
          .getByText(/damaged/i)
          .count(),
        0,
        address,
      )
    }

    await page.goto(`${tacho.home}/prompts`)
    await row('hurt').getByText('Damaged in the store: write another version').waitFor()
    assert.equal(
      await row('whole')
        .getByText(/damaged/i)
        .count(),
      0,
    )
    await row('hurt').getByRole('link').click()
    await page.getByText('Damaged', { exact: true }).waitFor()
    await page.getByRole('textbox').first().fill('Be kind, hurt')
    await page.getByRole('button', { name: 'Save version 2' }).click()
    // The head and the text below it both show the version, but not at the same moment.
    await page.getByText('version 2', { exact: true }).first().waitFor()
    await page.getByText('Damaged', { exact: true }).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Versions' }).click()
    await page.getByText('Damaged', { exact: true }).waitFor()

    await page.goto(`${tacho.home}/policies`)
    await row('hurt').getByText('Damaged in the store: write another version').waitFor()
    await row('hurt').getByText('development: damaged').waitFor()
    await row('whole').getByText('development: 1').waitFor()

    await page.goto(`${tacho.home}/rollout`)
    await page.getByText('The configuration in force is damaged', { exact: false }).waitFor()
    await page.getByRole('listitem').filter({ hasText: 'hurt' }).getByText('Damaged', { exact: true }).waitFor()

    await marks('/settings/alerts', 'whole')
    await page.getByRole('button', { name: 'Actions for the damaged alert' }).click()
    await page.getByRole('button', { name: 'Delete…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Damaged', { exact: true }).waitFor({ state: 'hidden' })

    await marks('/settings/webhooks', 'whole')
    await page.getByRole('link', { name: 'Damaged address' }).click()
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await row('whole').waitFor()
    await page.getByText('Damaged address').first().waitFor({ state: 'hidden' })

    await marks('/settings/prices', 'whole')
    await page.goto(`${tacho.home}/settings/environments`)
    await page.getByText('The stored rule is damaged', { exact: false }).waitFor()
    await page.goto(`${tacho.home}/settings/data`)
    await page.getByText('The stored settings are damaged', { exact: false }).waitFor()
    await close()
  })
})
