/** Schemathesis, a program of others, checks the service against its OpenAPI documents. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { OPERATOR_ROUTES } from '@tacho/contract/web/operator-routes.ts'
import { KEPT_BYTECODE, schemathesisInterpreter, withoutSchemathesis } from '../../../../sdk-conformance/test/python.ts'
import { startService, type Service } from '../../setup/service.ts'

type OperationName = keyof typeof OPERATOR_ROUTES

const HOOKS = fileURLToPath(new URL('hooks.py', import.meta.url))
const UNKNOWN_ID = '01900000-0000-7000-8000-000000000000'
const RUN_MS = 850_000
/** Variables that Schemathesis gets. Its client reads all before each request; npm's take a third of its processor time. */
const KEPT = ['PATH', 'HOME', 'TMPDIR', KEPT_BYTECODE].map((name) => [name, process.env[name]])
const ENVIRONMENT = { ...Object.fromEntries(KEPT), NO_COLOR: '1' }

/**
 * Operations with rules that a schema cannot express: they may refuse with 400 what their schema allows. Their
 * descriptions have the rule.
 */
const STRICTER: Record<string, OperationName[]> = {
  'a time in the future': [
    'createApiKey',
    'changeApiKey',
    'rotateApiKey',
    'createToken',
    'createInstallationToken',
    'rotateToken',
    'rotateInstallationToken',
    'ignoreIssue',
  ],
  'a filter by a score': ['listOperatorRuns', 'createRunView', 'changeRunView', 'exportEnvironment', 'exportParquet'],
  'a range of times': ['searchEvents', 'listUnpricedModels', 'readUsage', 'readUsagePoints', 'readCompleteness'],
  'fields that need or exclude each other': [
    'listEventRows',
    'decideApproval',
    'decideApprovals',
    'stop',
    'listDeploymentChanges',
    'createErasure',
    'previewErasure',
    'createAlert',
    'changeAlert',
    'previewRetention',
    'changeRetention',
    'changeWorkspaceRetention',
  ],
  'each item once': ['deploy', 'promote', 'rollBack'],
  'a condition that compiles': ['createPolicy', 'createPolicyVersion', 'createSimulation', 'changeToolLabels'],
  'an address that exists': ['createWebhook', 'changeWebhook', 'invite', 'inviteEverywhere'],
}

/** Their path also fits the GET of another operation, which takes the last part for an id. */
const NAMED_LIKE_AN_ID: OperationName[] = ['decideApprovals', 'previewErasure', 'findErasableSteps']

describe('the service keeps its OpenAPI documents', { skip: withoutSchemathesis }, () => {
  let service: Service
  let folder: string
  let workspaceId: string
  before(async () => {
    service = await startService()
    folder = mkdtempSync(path.join(os.tmpdir(), 'tacho-schemathesis-'))
    workspaceId = (await service.newTenant('fuzzed')).workspaceId
  })
  after(async () => {
    rmSync(folder, { recursive: true })
    await service.close()
  })

  test('the public interface', { timeout: RUN_MS }, () =>
    run('/openapi/v1', `X-API-Key: ${service.apiKey}`, 40, { 'query.wait': '1' }),
  )

  test('the operator API', { timeout: RUN_MS }, () =>
    run('/operator/v1', `Authorization: Bearer ${service.operatorToken}`, 2, {
      'path.environmentId': service.environmentId,
      'path.workspaceId': workspaceId,
      'path.tokenId': UNKNOWN_ID,
    }),
  )

  async function run(prefix: string, header: string, examples: number, parameters: Record<string, string>) {
    const config = path.join(folder, 'schemathesis.toml')
    writeFileSync(config, configuration(parameters))
    const args = [
      '-m',
      'schemathesis.cli',
      '--config-file',
      config,
      'run',
      `${service.url}${prefix}/openapi.json`,
      '--header',
      header,
    ]
    args.push('--phases', 'examples,coverage,fuzzing', '--max-examples', String(examples), '--seed', '1')
    const { stdout, stderr } = await promisify(execFile)(schemathesisInterpreter, args, {
      cwd: folder,
      env: ENVIRONMENT,
      maxBuffer: 256 * 1_048_576,
    }).catch((error: { stdout: string; stderr: string }) => error)
    assert.match(stdout, /Test cases:/, `${stderr}${stdout}`.slice(-2_000))
    assert.doesNotMatch(stdout, /Failures:|Errors:/, shortened(stdout))
  }
})

function configuration(parameters: Record<string, string>): string {
  const stricter = Object.values(STRICTER).flat()
  const lines = [
    `hooks = ${JSON.stringify(HOOKS)}`,
    'continue-on-failure = true',
    'request-timeout = 60',
    'warnings = false',
    // A stream does not end.
    'max-stream-events = 1',
    '[parameters]',
    ...Object.entries(parameters).map(([name, value]) => `${JSON.stringify(name)} = ${JSON.stringify(value)}`),
    '[generation]',
    'allow-x00 = false',
    'database = "none"',
    '[checks.negative_data_rejection]',
    // The schema of a batch does not apply: invalid events are rejected one by one, with status 200.
    'enabled = false',
    '[[operations]]',
    `include-operation-id = ${JSON.stringify(stricter)}`,
    'checks.positive_data_acceptance.enabled = false',
    '[[operations]]',
    `include-operation-id = ${JSON.stringify(NAMED_LIKE_AN_ID)}`,
    'checks.unsupported_method.enabled = false',
    // A later entry replaces an earlier one.
    'checks.positive_data_acceptance.enabled = false',
  ]
  return `${lines.join('\n')}\n`
}

/** Removes the large bodies from the commands that reproduce a failure. */
function shortened(output: string): string {
  const lines = output.split('\n').map((line) => line.slice(0, 600))
  return lines.join('\n').slice(-20_000)
}
