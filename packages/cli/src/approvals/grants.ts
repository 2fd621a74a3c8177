/** `tacho approvals grants list`, `tacho approvals grants revoke` and `tacho approvals asked`. */
import { eachItem, taken } from '@tacho/client/items.ts'
import { duration } from '@tacho/contract/engine/format.ts'
import type { ApprovalGrant } from '@tacho/contract/approvals/grant.ts'
import { connected } from '../engine/connected.ts'
import { OF_ENVIRONMENT, orNull, unknown } from '../engine/find-by-id.ts'
import { mostOf, pageSize, type EnvironmentOptions, type PageOptions } from '../engine/options.ts'
import { printable, printEmpty, printJson, printLine, printMore, printTable, spokenNumber } from '../engine/output.ts'

export async function listGrants(options: EnvironmentOptions & PageOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const limit = mostOf(options)
  const query = { limit: pageSize(limit) }
  const { items, hasMore } = await taken(
    eachItem(client.listApprovalGrants, { params: { environmentId }, query }),
    limit,
  )
  if (options.json) return printJson({ items, hasMore })
  if (items.length === 0)
    return printEmpty('No standing approvals. `tacho approvals approve <id> --also input` gives one.')
  printTable(
    [
      { title: 'GIVEN', as: 'time' },
      { title: 'STATE', as: 'word' },
      { title: 'GRANT', as: 'id' },
      { title: 'ALLOWS', as: 'text' },
      { title: 'USED', align: 'right' },
      { title: 'UNTIL', as: 'time' },
      { title: 'BY', isOptional: true },
    ],
    items.map((grant) => [
      grant.createdAt,
      grant.state.toUpperCase(),
      grant.id,
      allowedText(grant),
      `${grant.uses} of ${grant.mostUses}`,
      grant.expiresAt,
      grant.grantedBy.name,
    ]),
  )
  printMore(hasMore)
}

function allowedText({ scope, toolName, runId, agentId, condition }: ApprovalGrant): string {
  if (scope === 'condition') return `${toolName} of ${agentId} where ${condition}`
  return `${toolName}${scope === 'input' ? ' with the same input' : ''} in run ${runId}`
}

export async function revokeGrant(grantId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const grant = await orNull(client.revokeApprovalGrant({ params: { environmentId, grantId } }))
  if (grant === null) throw unknown('standing approval', grantId, 'approvals grants list', OF_ENVIRONMENT)
  if (options.json) return printJson(grant)
  const uses = `It approved ${spokenNumber(grant.uses)} ${grant.uses === 1 ? 'call' : 'calls'}.`
  printLine(`Standing approval ${printable(grant.id)}: ${grant.state.replace('_', ' ')}. ${uses}`)
}

/** Signs that approvers are tired: how often each policy asks, how fast people answer, how many calls they reject. */
export async function listAsked(options: EnvironmentOptions & { hours: number }): Promise<void> {
  const { client, environmentId } = await connected(options)
  const query = { hours: options.hours }
  const { items, capped, since } = await client.listAskingPolicies({ params: { environmentId }, query })
  if (options.json) return printJson({ items, capped, since })
  if (items.length === 0)
    return printEmpty('No policy asked in that time. `tacho approvals asked --hours 720` counts 30 days.')
  const spoken = (ms: number | null) => (ms === null ? '-' : duration(ms))
  printTable(
    [
      { title: 'POLICY' },
      { title: 'ASKED', align: 'right' },
      { title: 'APPROVED', align: 'right' },
      { title: 'REJECTED', align: 'right' },
      { title: 'UNANSWERED', align: 'right' },
      { title: 'BY GRANT', align: 'right' },
      { title: 'WITHIN 5 S', align: 'right' },
      { title: 'ANSWER P50', align: 'right' },
      { title: 'P95', align: 'right' },
    ],
    items.map((item) => [
      item.policyId ?? '(none)',
      ...[item.requests, item.approved, item.rejected, item.expired, item.byGrant, item.quick].map(spokenNumber),
      spoken(item.answerP50),
      spoken(item.answerP95),
    ]),
  )
  if (capped) printLine('Only the newest requests of that time are counted.')
}
