/** All rules, and the function that runs one. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { Adapter } from './adapter.ts'
import { RELEASE, type Rule, type Subject } from './rule.ts'
import { approvalRules } from './rules/approvals.ts'
import { completenessRules } from './rules/completeness.ts'
import { configurationRules } from './rules/configuration.ts'
import { eventRules } from './rules/events.ts'
import { issueRules } from './rules/issues.ts'
import { replayRules } from './rules/replay.ts'
import { scoreRules } from './rules/scores.ts'
import { startScriptedService } from './scripted-service.ts'

export const RULES: readonly Rule[] = [
  ...eventRules,
  ...completenessRules,
  ...configurationRules,
  ...approvalRules,
  ...issueRules,
  ...scoreRules,
  ...replayRules,
]

export type Verdict = { readonly ok: true } | { readonly ok: false; readonly problem: string }

const RULE_MS = 60_000
const ROUTES = ['events', 'issue-records', 'runtime-config', 'ask', 'answer', 'tool-calls'] as const
const FLUSH_MS = 20_000

/** Runs one rule with a new client and service. The key must not appear in anything the adapter wrote. */
export async function runRule(rule: Rule, shared: Adapter): Promise<Verdict> {
  const service = await startScriptedService()
  const other = rule.isReplay && (await startScriptedService())
  const adapter = rule.isReplay ? shared.again({ TACHO_REPLAY: service.url }) : shared
  const apiKey = `key-${randomBytes(16).toString('hex')}`
  const clients: string[] = []

  async function start(handle?: object): Promise<Subject> {
    const client = randomUUID()
    const clientId = `conformance-${client}`
    await adapter.send('start', {
      client,
      baseUrl: (other || service).url,
      apiKey,
      clientId,
      release: RELEASE,
      ...(handle && { handle }),
    })
    clients.push(client)
    return {
      service,
      clientId,
      apiKey,
      record: (event = {}) => adapter.send('record', { client, event }),
      score: (score) => adapter.send('score', { client, score }),
      flush: (timeoutMs = FLUSH_MS) => adapter.send('flush', { client, timeoutMs }),
      refresh: () => adapter.send('refresh', { client }),
      configuration: () => adapter.send('configuration', { client }),
      call: (call) => adapter.send('call', { client, ...call }),
      handle: () => adapter.send('handle', { client }),
      proceed: (call) => adapter.send('proceed', { client, ...call }),
      next: start,
      changeInput: (callId, input) => adapter.send('changeInput', { client, callId, input }),
      report: (record) => adapter.send('report', { client, record }),
      counters: () => adapter.send('counters', { client }),
      output: () => adapter.output(),
      elsewhere: () => (other ? ROUTES.reduce((sum, route) => sum + other.requests(route).length, 0) : 0),
    }
  }
  let timeout: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timeout = setTimeout(() => reject(new Error(`the rule took longer than ${RULE_MS} ms`)), RULE_MS)
  })
  try {
    await Promise.race([start().then((subject) => rule.run(subject)), late])
    if (adapter.output().includes(apiKey)) return { ok: false, problem: 'the API key is in the output of the adapter' }
    return { ok: true }
  } catch (error) {
    return { ok: false, problem: error instanceof Error ? error.message : String(error) }
  } finally {
    clearTimeout(timeout)
    // Close the service first: a client that cannot deliver must not delay the next rule.
    await service.close()
    for (const client of clients) await adapter.send('stop', { client }).catch(() => undefined)
    if (other) await Promise.all([other.close(), adapter.stop()])
  }
}
