/** The runtime configuration: "Client rules" of GET /runtime-config. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { Rule } from '../rule.ts'
import { garbage, hangUp, json, refuse, type Answer } from '../scripted-service.ts'

export interface Deployed {
  revision: string
  prompts: object[]
  policies: object[]
}

export function prompt(name: string, content: string): object {
  const contentHash = createHash('sha256').update(content).digest('hex')
  const promptId = '01900000-0000-7000-8000-000000000001'
  const versionId = '01900000-0000-7000-8000-000000000002'
  return { promptId, name, versionId, version: '1', content, contentHash }
}

export function policy(policyId: string, condition: string, action: string): object {
  return { policyId, name: policyId, description: null, version: '1', condition, severity: 'HIGH', action }
}

export const serve = (configuration: Deployed): Answer =>
  json(200, configuration, { etag: `W/"${configuration.revision}"` })

const FIRST = {
  revision: 'r1',
  prompts: [prompt('greeting', 'Hello, “{{name}}”')],
  policies: [policy('p1', 'false', 'BLOCK')],
}
const SECOND = { revision: 'r2', prompts: [prompt('greeting', 'Good day')], policies: [policy('p2', 'false', 'WARN')] }

const SEEN_FIRST = { revision: 'r1', prompts: { greeting: 'Hello, “{{name}}”' }, policyIds: ['p1'] }
const SEEN_SECOND = { revision: 'r2', prompts: { greeting: 'Good day' }, policyIds: ['p2'] }

/** After this answer, the loaded configuration stays in use. */
function keepsLastGood(name: string, title: string, trouble: Answer): Rule {
  return {
    id: `configuration/${name}`,
    title,
    async run(subject) {
      subject.service.script('runtime-config', serve(FIRST), trouble)
      await subject.refresh()
      assert.deepEqual(await subject.configuration(), SEEN_FIRST)
      await subject.refresh()
      assert.deepEqual(await subject.configuration(), SEEN_FIRST)
    },
  }
}

export const configurationRules: Rule[] = [
  {
    id: 'configuration/etag',
    title:
      'The ETag is sent back unchanged, with the id of the client; 304 keeps the configuration, 200 replaces it whole',
    async run(subject) {
      const { service, clientId } = subject
      service.script('runtime-config', serve(FIRST), json(304, undefined, { etag: '"r1"' }), serve(SECOND))
      await subject.refresh()
      await subject.refresh()
      assert.deepEqual(await subject.configuration(), SEEN_FIRST)
      await subject.refresh()
      assert.deepEqual(await subject.configuration(), SEEN_SECOND)
      const [first, second] = service.requests('runtime-config')
      assert.equal(first?.headers['if-none-match'], undefined)
      assert.equal(second?.headers['if-none-match'], 'W/"r1"')
      for (const request of [first, second]) assert.equal(request?.headers['x-service-client-id'], clientId)
    },
  },
  keepsLastGood(
    'content-hash',
    'One wrong contentHash rejects the whole answer',
    serve({ ...SECOND, prompts: [...SECOND.prompts, { ...prompt('other', 'x'), contentHash: 'ab'.repeat(32) }] }),
  ),
  keepsLastGood(
    'upper-case-hash',
    'A contentHash that is not lower-case hex is wrong',
    serve({
      ...SECOND,
      prompts: [
        { ...prompt('greeting', 'x'), contentHash: createHash('sha256').update('x').digest('hex').toUpperCase() },
      ],
    }),
  ),
  keepsLastGood(
    'incomplete',
    'An answer that lacks a part is rejected whole',
    json(200, { revision: 'r2', prompts: [] }),
  ),
  keepsLastGood('garbage', 'An answer that is not JSON is rejected', garbage),
  keepsLastGood('server-error', 'After 500 the last valid configuration stays', refuse(500)),
  keepsLastGood('unreachable', 'While the service is down the last valid configuration stays', hangUp),
  {
    id: 'configuration/not-loaded',
    title: 'Without a valid first answer there is no configuration',
    async run(subject) {
      subject.service.script('runtime-config', garbage)
      await subject.refresh()
      assert.deepEqual(await subject.configuration(), { revision: null, prompts: {}, policyIds: [] })
    },
  },
]
