/** `tacho policies test`: judges example calls by the policies of a file, as agents would, without a server. */
import path from 'node:path'
import { isObject, type Json } from '@tacho/contract/record/payload-reader.ts'
import { POLICY_ACTIONS } from '@tacho/contract/engine/words.ts'
import type { Policy } from '@tacho/policy/decide.ts'
import { decideExample, type ExampleCall } from '@tacho/policy/history/example-call.ts'
import { parseDocument } from 'yaml'
import { manifestOf } from './apply/read-manifest.ts'
import { wrongUsage } from '../engine/stop.ts'
import { writeJunit } from '../engine/files.ts'
import { counted, printable, printJson, printLine } from '../engine/output.ts'
import { readSource } from './source-file.ts'

interface TestOptions {
  file: string
  junit?: string
  json?: true
}

interface Example {
  name: string
  call: ExampleCall
  now: number
}

interface Result {
  name: string
  ok: boolean
  expected: string
  decided: string
  policies: readonly string[]
  failures: readonly { policyId: string; message: string }[]
}

const MEMBERS = [
  'name',
  'tool',
  'server',
  'input',
  'annotations',
  'agent',
  'run',
  'session',
  'risk',
  'now',
  'past',
  'expect',
  'policies',
]

export async function testPolicies(manifestFile: string | undefined, options: TestOptions): Promise<void> {
  const manifest = await manifestOf(options.file)
  const policies = [...manifest.policies].map(([policyId, policy]): Policy => ({ policyId, version: '1', ...policy }))
  const file = manifestFile ?? path.join(path.dirname(options.file), 'policies.test.yaml')
  const known = new Set(manifest.policies.keys())
  const examples = readExamples(file, await readSource(file), known)
  const deployed = { policies, labels: manifest.labels ?? [] }
  const results = examples.map(({ name, call, now }): Result => {
    const { action, ...decided } = decideExample(call, deployed, now)
    return { name, expected: expectedOf(call), decided: action, ...decided }
  })
  const wrong = results.filter(({ ok }) => !ok)
  if (options.junit !== undefined) writeResults(options.junit, results)
  if (wrong.length > 0) process.exitCode = 1
  if (options.json) return printJson({ passed: results.length - wrong.length, failed: wrong.length, items: results })
  for (const result of wrong) printLine(`✗ ${printable(result.name)}: ${printable(sentenceOf(result))}`)
  printLine(`${results.length - wrong.length} of ${counted(results.length, 'example')} decided as expected.`)
}

const expectedOf = ({ expect, policies = null }: ExampleCall): string =>
  policies === null ? expect : `${expect} by ${policies.join(', ') || 'no policy'}`

function sentenceOf({ expected, decided, policies, failures }: Result): string {
  const failed = failures.map(
    ({ policyId, message }) => `; the condition of ${policyId} could not be evaluated: ${message}`,
  )
  return `expected ${expected}, but it is ${decided} by ${policies.join(', ') || 'no policy'}${failed.join('')}`
}

function writeResults(file: string, results: readonly Result[]): void {
  const cases = results.map((result) => ({ name: result.name, failure: result.ok ? null : sentenceOf(result) }))
  writeJunit(file, 'tacho policies test', 'policies', cases)
}

function readExamples(file: string, text: string, known: ReadonlySet<string>): Example[] {
  const refuse = (why: string) => wrongUsage(`${printable(file)}: ${why}.`)
  const document = parseDocument(text, { prettyErrors: false })
  const [error] = document.errors
  if (error) throw refuse(error.message)
  let root: unknown
  try {
    root = document.toJS({ maxAliasCount: 0 })
  } catch {
    throw refuse('must not have an alias such as *name')
  }
  const list = isObject(root) ? root['tests'] : root
  if (!Array.isArray(list) || list.length === 0) throw refuse('must be a list of examples, or have one in `tests`')
  return list.map((one: unknown, index) => {
    const place = `example ${index + 1}`
    if (!isObject(one)) throw refuse(`${place} is not a mapping`)
    const unknown = Object.keys(one).find((key) => !MEMBERS.includes(key))
    if (unknown !== undefined) throw refuse(`${place} has the unknown field ${unknown}; use ${MEMBERS.join(', ')}`)
    const { tool, expect, name = tool } = one
    if (typeof tool !== 'string' || tool === '') throw refuse(`${place} needs tool: the name of the called tool`)
    const action = POLICY_ACTIONS.find((each) => each === expect)
    if (action === undefined) throw refuse(`${place} needs expect: one of ${POLICY_ACTIONS.join(', ')}`)
    const { now: at } = one
    const now = at === undefined ? Date.now() : typeof at === 'string' ? Date.parse(at) : Number.NaN
    if (!Number.isFinite(now)) throw refuse(`now of ${place} must be a time such as 2026-01-31T12:00:00Z`)
    const { policies = null } = one
    const ids = policies as readonly string[] | null
    if (ids !== null && !(Array.isArray(ids) && ids.every((id) => known.has(id)))) {
      throw refuse(`policies of ${place} must be a list of policies of the file`)
    }
    const { past = [] } = one
    if (!Array.isArray(past) || !past.every(isStep)) {
      throw refuse(`past of ${place} must be a list of { said } or { tool, input, output }`)
    }
    return {
      name: `${index + 1} ${typeof name === 'string' ? name : tool}`,
      call: { ...one, tool, expect: action, policies: ids, past },
      now,
    }
  })
}

/** Whether a value is an earlier step of the run: the user's words, or a call that returned or failed. */
function isStep(step: unknown): step is Json {
  if (!isObject(step)) return false
  if ('said' in step) return Object.keys(step).length === 1
  return typeof step['tool'] === 'string' && Object.keys(step).every((key) => STEP_MEMBERS.includes(key))
}

const STEP_MEMBERS = ['tool', 'server', 'input', 'output', 'error']
