/**
 * `tacho policies propose`: the condition that asks least often and still covers every rejection, computed from
 * people's decisions.
 */
import { percent } from '@tacho/contract/engine/format.ts'
import type { Proposal } from '@tacho/contract/approvals/proposal.ts'
import { connect, type EnvironmentOptions } from '../engine/options.ts'
import { printable, printJson, printLine, spokenNumber } from '../engine/output.ts'
import { findPlace } from '../tenants/tenants.ts'
import { findItem } from './versioned-item.ts'

export async function proposePolicy(policyName: string, options: EnvironmentOptions & { days: number }): Promise<void> {
  const client = connect(options)
  const { environment, workspace } = await findPlace(client, options.environment, '--environment')
  const { id: policyId } = await findItem(client, workspace.id, 'policy', policyName)
  const params = { environmentId: environment.id, policyId }
  const proposal = await client.proposeCondition({ params, query: { hours: options.days * 24 } })
  if (options.json) return printJson(proposal)
  printProposal(proposal)
}

function printProposal(proposal: Proposal): void {
  const { policyId, version, approved, rejected, capped, proposed, why, caveats } = proposal
  const since = proposal.since.slice(0, 10)
  const decided = `${spokenNumber(approved)} approved and ${spokenNumber(rejected)} rejected calls since ${since}`
  const most = capped ? ' (only the newest were looked at)' : ''
  if (proposed === null) return printLine(`Nothing is proposed for ${printable(policyId)}: ${why}. ${decided}${most}.`)
  printLine(`Version ${printable(version)} of ${printable(policyId)}: ${decided}${most}.`)
  printLine('')
  printLine(`It would ask only if also  ${printable(proposed.addition)}`)
  printLine('')
  printLine(`  rejected, still asked    ${spokenNumber(rejected)} of ${spokenNumber(rejected)}`)
  printLine(`  approved, still asked    ${spokenNumber(proposed.stillAsked)} of ${spokenNumber(approved)}`)
  const [share, low, high] = [proposed.share, proposed.low, proposed.high].map((fraction) => percent(fraction, 1))
  printLine(
    `  approved, no longer      ${spokenNumber(proposed.notAsked)} (${share}; ${low} to ${high} of calls to come)`,
  )
  const { calls, kept } = proposed.leftOut
  if (calls > 0)
    printLine(`  rejected, left out       ${spokenNumber(kept)} of ${spokenNumber(calls)} would have been asked`)
  printLine('')
  for (const caveat of caveats) printLine(`- ${printable(caveat)}.`)
  printLine('')
  printLine('Nothing is changed. Try it on recorded calls, and then write a version:')
  const shown = proposed.condition.replaceAll(/\s+/g, ' ').replaceAll("'", String.raw`'\''`)
  const where = proposed.condition.includes('//') ? null : `--condition '${printable(shown)}'`
  printLine(`  tacho policies simulate ${where ?? '--file <file>'} --action REQUIRE_APPROVAL`)
}
