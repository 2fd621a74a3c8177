import type { DoctorReport } from '@tacho/contract/web/operator-routes.ts'
import type { EventTrace } from '@tacho/contract/runs/operator-run.ts'
import type { Command } from 'commander'
import { answered, type OperatorClient, unreachable } from '../engine/operator-client.ts'
import { connect, inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { printable, printJson, printLine } from '../engine/output.ts'
import { knownUrl } from '../engine/server-address.ts'
import { Stop, wrongUsage } from '../engine/stop.ts'
import { findEnvironment } from '../tenants/tenants.ts'

interface Options extends EnvironmentOptions {
  run?: string
  event?: string
}

export function addDoctor(command: Command): void {
  inEnvironment(command)
    .option('--run <id>', 'run of the event, by external or internal id')
    .option('--event <id>', 'the eventId that the client sent')
    .addHelpText(
      'after',
      `
The exit code is 1 when a check fails, or when the event is not stored.

Examples:
  tacho doctor
  tacho doctor --run order-4711 --event 01J9ZK3 --environment acme/production`,
    )
    .action(doctor)
}

async function doctor(options: Options): Promise<void> {
  if ((options.run === undefined) !== (options.event === undefined)) {
    throw wrongUsage('Give --run and --event together: they identify one event.')
  }
  const { run, event } = options
  if (run !== undefined && event !== undefined) return traceEvent(connect(options), run, event, options)
  const report = await reachable(knownUrl(options.url))
  printReport(report.answers ? await serverReport(report, options) : report, options)
}

type Reached = DoctorReport & { answers: boolean }

/** Whether a Tacho service answers and is ready; otherwise the reason. Needs no token. */
async function reachable(url: string): Promise<Reached> {
  const reached = (ok: boolean, answers: boolean, detail: string): Reached => {
    return { ok, version: '', checks: [{ name: 'server', ok, detail }], answers }
  }
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) })
    const { status, type, code, detail } = await readAnswer(response)
    if (response.ok && status === 'ready') return reached(true, true, `${url} answers and is ready`)
    if (!type?.startsWith('urn:tacho:')) {
      return reached(false, false, `No Tacho answers at ${url} (status ${response.status}): check the address`)
    }
    const reason = detail ?? code ?? String(response.status)
    return reached(false, true, `${url} is not ready: ${reason.replace(/\.$/, '')}. ${remedyOf(code, reason)}`)
  } catch (error) {
    return reached(false, false, unreachable(url, error).replace(/\.$/, ''))
  }
}

interface Answer {
  status?: unknown
  type?: string
  code?: string
  detail?: string
}

/** Reads an answer that may come from any program, if the address is wrong. */
async function readAnswer(response: Response): Promise<Answer> {
  const text = (await response.text()).slice(0, ANSWER_CHARS)
  try {
    const answer = JSON.parse(text) as Record<string, unknown> | null
    const texts = Object.entries(answer ?? {}).filter(([, value]) => typeof value === 'string')
    return Object.fromEntries(texts) as Answer
  } catch {
    return {}
  }
}

const ANSWER_CHARS = 10_000
const REMEDIES = new Map([
  [
    'storage_full',
    'Free space on the disk of the store, or lower --min-free-disk: reads still work, and nothing is lost',
  ],
  ['storage_unavailable', 'Look at the disk or the database of the store, and at the log of the server'],
  ['shutting_down', 'It is stopping: start it again, or ask another node'],
])

function remedyOf(code: string | undefined, reason: string): string {
  if (/damaged/.test(reason)) return 'Stop the server and restore a backup with `tacho restore`'
  return REMEDIES.get(code ?? '') ?? 'See the log of the server'
}

async function serverReport(reached: Reached, options: Options): Promise<DoctorReport> {
  try {
    const report = await connect(options).readDoctor()
    return { ...report, ok: report.ok && reached.ok, checks: [...reached.checks, ...report.checks] }
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    // If the server has no store, it could not check the token, so the token is not the fault.
    const check = {
      name: reached.ok ? 'operator token' : 'report',
      ok: false,
      detail: error.message.replace(/\.$/, ''),
    }
    return { ok: false, version: '', checks: [...reached.checks, check] }
  }
}

function printReport(report: DoctorReport, options: Options): void {
  if (!report.ok) process.exitCode = 1
  if (options.json) return printJson({ ok: report.ok, version: report.version, checks: report.checks })
  const width = Math.max(...report.checks.map(({ name }) => name.length))
  for (const { name, ok, detail } of report.checks) {
    printLine(`${ok ? '✔' : '✖'} ${printable(name).padEnd(width)}  ${printable(detail)}.`)
  }
}

async function traceEvent(client: OperatorClient, runId: string, eventId: string, options: Options): Promise<void> {
  const environment = await findEnvironment(client, options.environment)
  const params = { environmentId: environment.id, runId, eventId }
  if (options.json) {
    const { text, value } = answered(client.url, await client.whole.traceEvent({ params }))
    if (value.outcome !== 'stored') process.exitCode = 1
    return printLine(text)
  }
  const trace = await client.traceEvent({ params })
  if (trace.outcome !== 'stored') process.exitCode = 1
  for (const sentence of traceSentences(trace, runId, eventId)) printLine(printable(sentence))
}

/** Describes the result of a trace in sentences. */
export function traceSentences(trace: EventTrace, runId: string, eventId: string): string[] {
  const { outcome, event, position, rejection } = trace
  if (outcome === 'rejected' && rejection) {
    return [
      `Event ${eventId} of run ${runId} was rejected at ${rejection.rejectedAt} and is not stored.`,
      `${rejection.message} (${rejection.code}).`,
      'Sending it again unchanged will fail again: correct it in the client.',
    ]
  }
  if (outcome !== 'stored' || !event) {
    return [
      `The server has no record of event ${eventId} in run ${runId}. It was never sent to this environment, or its ` +
        'rejection is too old to be kept.',
      'Check the environment, both ids, and the answer that the client got: every accepted event is stored.',
    ]
  }
  const place = position === undefined ? '' : ` as number ${position} of its timeline`
  return [
    `Event ${eventId} is stored in run ${event.runId}${place}: ${event.eventType}, ${JSON.stringify(event.label)}.`,
    `It happened at ${event.timestamp} and was stored at ${event.receivedAt}; client ${event.clientId} sent it.`,
    trace.countedUsage ? 'It added to the usage of its run.' : 'It added nothing to the usage of its run.',
    ...(trace.closedRun ? ['It is the outcome that closed its run.'] : []),
    ...(trace.warnings ?? []).map(({ message }) => `Not understood: ${message}.`),
  ]
}
