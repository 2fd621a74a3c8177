/** `tacho environments stalled-rule`: shows or changes when running runs count as stalled. */
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ClosedAs, StalledRule } from '@tacho/contract/runs/stalled-rule.ts'
import { Option, type Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, wholeNumber, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printJson, printLine } from '../engine/output.ts'

interface Options extends EnvironmentOptions {
  idle?: number
  close?: ClosedAs | 'never'
}

export function addStalledRule(environments: Command): void {
  inEnvironment(
    environments
      .command('stalled-rule')
      .description('show or change when running runs count as stalled, and what closes them'),
  )
    .option('--idle <minutes>', 'stalled after so long without an event', wholeNumber(LIMITS.stalledMinutesMax))
    .addOption(new Option('--close <status>', 'close stalled runs as this').choices(['FAILED', 'CANCELLED', 'never']))
    .addHelpText(
      'after',
      `
A run that waits for an approval is not stalled. A closed run says that its process went silent. Its next event opens it
again, and an outcome decides.

Examples:
  tacho environments stalled-rule
  tacho environments stalled-rule --idle 60 --close FAILED -e acme/production
  tacho environments stalled-rule --close never`,
    )
    .action(stalledRule)
}

async function stalledRule(options: Options): Promise<void> {
  const { client, environmentId } = await connected(options)
  const { idle, close, json } = options
  const params = { environmentId }
  const body = {
    ...(idle !== undefined && { idleMinutes: idle }),
    ...(close !== undefined && { closeAs: close === 'never' ? null : close }),
  }
  const isChange = Object.keys(body).length > 0
  const rule = isChange ? await client.changeStalledRule({ params, body }) : await client.readStalledRule({ params })
  if (json) printJson(rule)
  else printLine(spokenRule(rule))
}

function spokenRule({ idleMinutes, closeAs, closeAfterMinutes, source }: StalledRule): string {
  const after = `A running run is stalled after ${counted(idleMinutes, 'minute')} without an event`
  const closed =
    closeAfterMinutes === idleMinutes ? 'and is closed' : `and closed after ${counted(closeAfterMinutes, 'minute')}`
  const then = closeAs === null ? 'and stays open' : `${closed} as ${closeAs}`
  return `${after}, ${then}${source === 'default' ? ' (default)' : ''}.`
}
