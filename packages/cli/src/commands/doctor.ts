import type { DoctorReport } from '@tacho/contract/operator/doctor.ts'
import type { EventTrace } from '@tacho/contract/operator/run.ts'
import type { Command } from 'commander'
import { answered, type OperatorClient } from '../calls/operator-client.ts'
import { connect, inEnvironment, type EnvironmentOptions } from '../settings/options.ts'
import { printable, printJson, printLine } from '../terminal/output.ts'
import { readUrl } from '../settings/credentials.ts'
import { unreachable } from '../calls/server-trouble.ts'
import { Stop, wrongUsage } from '../stop.ts'
import { findEnvironment } from '../calls/tenants.ts'

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
  const report = await reachable(readUrl(options.url))
  printReport(report.ok ? await serverReport(report, options) : report, options)
}

/** Whether the server answers and is ready. Needs no token. */
async function reachable(url: string): Promise<DoctorReport> {
  const name = 'server'
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) })
    await response.body?.cancel()
    const detail = response.ok
      ? `${url} answers and is ready`
      : `${url} answers, but is not ready (${response.status}); see its log`
    return { ok: response.ok, version: '', checks: [{ name, ok: response.ok, detail }] }
  } catch (error) {
    const detail = unreachable(url, error).replace(/\.$/, '')
    return { ok: false, version: '', checks: [{ name, ok: false, detail }] }
  }
}

async function serverReport(reached: DoctorReport, options: Options): Promise<DoctorReport> {
  try {
    const report = await connect(options).readDoctor()
    return { ...report, checks: [...reached.checks, ...report.checks] }
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    const check = { name: 'operator token', ok: false, detail: error.message.replace(/\.$/, '') }
    return { ok: false, version: '', checks: [...reached.checks, check] }
  }
}

function printReport(report: DoctorReport, options: Options): void {
  if (!report.ok) process.exitCode = 1
  if (options.json) return printJson(report)
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

/** The result of a trace, in sentences. */
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
