import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { PREFIX } from '@tacho/client/operator.ts'
import { InvalidArgumentError, type Command } from 'commander'
import { patientFetch } from '../engine/patient-fetch.ts'
import { findPlace } from '../tenants/tenants.ts'
import { unreachable } from '../engine/operator-client.ts'
import { readAccount } from '../engine/credentials.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { writeJson } from '../engine/output.ts'

interface Options extends EnvironmentOptions {
  method?: string
  data?: string
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const TIMEOUT_MS = 60_000
const PLACES = /\{(environmentId|workspaceId)\}/g

export function addApi(command: Command): void {
  command
    .option('-X, --method <method>', 'GET, or POST if there is a body', parseMethod)
    .option('-d, --data <json>', 'body; @file reads a file, - standard input')
    .option('-e, --environment <workspace/environment>', 'fills {environmentId} and {workspaceId} of the route')
    .option('--url <address>', 'address of the server (TACHO_URL)')
    .option('--token-file <file>', 'file with the operator token, instead of TACHO_OPERATOR_TOKEN or `tacho login`')
    .addHelpText(
      'after',
      `
Calls any endpoint of the operator API and prints its answer as it came. The routes are at /docs of the server. An
error answer goes to stdout too, and the exit code is 1.

Examples:
  tacho api /workspaces
  tacho api '/environments/{environmentId}/runs?limit=5' -e acme/production | jq -r '.items[].runId'
  tacho api /workspaces -d '{"name": "globex"}'`,
    )
    .action(call)
}

function parseMethod(methodText: string): string {
  const method = methodText.toUpperCase()
  if (METHODS.includes(method)) return method
  throw new InvalidArgumentError(`It must be one of ${METHODS.join(', ')}.`)
}

async function call(route: string, options: Options): Promise<void> {
  const { url, token } = readAccount(options)
  if (!route.startsWith('/'))
    throw wrongUsage(`A route begins with a slash, such as /workspaces, not ${JSON.stringify(route)}.`)
  const body = options.data === undefined ? null : await bodyOf(options.data)
  const place = PLACES.test(route) ? await findPlace(connect(options), options.environment, '--environment') : null
  const ids = new Map([
    ['environmentId', place?.environment.id],
    ['workspaceId', place?.workspace.id],
  ])
  const filled = route.replaceAll(PLACES, (_, name: string) => ids.get(name) ?? '')
  const target = new URL(`${url}${filled.startsWith(PREFIX) ? '' : PREFIX}${filled}`)
  // Send the token only to this server's operator API.
  if (!target.href.startsWith(`${url}${PREFIX}/`)) throw wrongUsage(`${filled} leads out of the operator API.`)
  const headers = { authorization: `Bearer ${token}`, ...(body === null ? {} : { 'content-type': 'application/json' }) }
  const method = options.method ?? (body === null ? 'GET' : 'POST')
  try {
    const reply = await patientFetch()(target, {
      method,
      headers,
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    })
    const answer = await reply.text()
    const whole = answer === '' || answer.endsWith('\n') ? answer : `${answer}\n`
    writeJson(whole)
    if (!reply.ok) process.exitCode = 1
  } catch (error) {
    throw failed(unreachable(url, error))
  }
}

async function bodyOf(data: string): Promise<string> {
  if (data === '-') return text(process.stdin)
  if (!data.startsWith('@')) return data
  try {
    return readFileSync(data.slice(1), 'utf8')
  } catch (error) {
    throw wrongUsage(`${JSON.stringify(data.slice(1))} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
}
