/** `tacho approvals approve` and `tacho approvals reject`. */
import type { NewGrant } from '@tacho/contract/approvals/grant.ts'
import type { GrantScope } from '@tacho/contract/engine/words.ts'
import type { Decision } from '@tacho/contract/approvals/approval.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { DecisionOutcome } from '@tacho/contract/approvals/approval-decision.ts'
import { known } from '../engine/find-by-id.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import type { EnvironmentOptions } from '../engine/options.ts'
import { printJson, printLine } from '../engine/output.ts'
import { failed, wrongUsage } from '../engine/stop.ts'
import { connected } from '../engine/connected.ts'
import { approvalLine } from './approval-lines.ts'

export interface DecideOptions extends EnvironmentOptions {
  reason?: string
  tool?: string
  input?: string
  confirmMismatch?: true
  also?: GrantScope
  where?: string
  minutes?: number
  uses?: number
}

/** Decides the given approvals, or all pending ones of a tool and input. Exit code 1 unless all were decided. */
export async function decide(decision: Decision, ids: string[], options: DecideOptions): Promise<void> {
  const { tool, input, reason } = options
  const confirmMismatch = options.confirmMismatch === true
  const byTool = tool !== undefined && input !== undefined
  if (byTool ? ids.length > 0 : ids.length === 0 || (tool ?? input) !== undefined) {
    throw wrongUsage('Give either approval ids, or both --tool and --input.')
  }
  const { client, environmentId } = await connected(options)
  const [id] = ids
  if (ids.length === 1 && id !== undefined) {
    const grant = grantOf(options)
    const body = { ...bodyOf({ decision, reason, confirmMismatch }), ...(grant && { grant }) }
    const decided = (approvalId: string) => client.decideApproval({ params: { environmentId, approvalId }, body })
    const approval = await known('approval', id, { client, environmentId }, decided)
    if (options.json) printJson(approval)
    else printLine(approvalLine(approval, Date.now()))
    if (grant && !options.json) printLine('Calls to come are allowed too: `tacho approvals grants list` shows them.')
    return
  }
  if (grantOf(options) !== null) throw wrongUsage('--also needs one approval id.')
  const items = await decideMany(
    client,
    environmentId,
    { decision, reason, confirmMismatch },
    byTool ? { tool, input } : { ids },
  )
  if (items.length === 0)
    throw failed(
      `No approval of ${tool} with this input is waiting. \`tacho approvals list\` shows those of the environment.`,
    )
  if (options.json) printJson({ items })
  else for (const item of items) printLine(outcomeLine(item))
  if (items.some(({ outcome }) => outcome !== 'decided' && outcome !== 'first')) process.exitCode = 1
}

/** Null: only this call is approved. */
function grantOf({ also, where, minutes, uses }: DecideOptions): NewGrant | null {
  const scope = also ?? (where === undefined ? undefined : 'condition')
  if (scope === undefined) {
    if ((minutes ?? uses) !== undefined) throw wrongUsage('--minutes and --uses belong to --also or --where.')
    return null
  }
  if ((scope === 'condition') !== (where !== undefined)) throw wrongUsage('--where belongs to --also condition.')
  return { scope, ...(where && { condition: where }), ...(minutes && { minutes }), ...(uses && { uses }) }
}

type Which = { ids: string[] } | { tool: string; input: string }

async function decideMany(
  client: OperatorClient,
  environmentId: string,
  decisionOf: Given,
  which: Which,
): Promise<DecisionOutcome[]> {
  const items: DecisionOutcome[] = []
  const call = async (chosen: object) => {
    const body = { ...bodyOf(decisionOf), ...chosen }
    const reply = await client.decideApprovals({ params: { environmentId }, body })
    items.push(...reply.items)
    return reply.more
  }
  if ('ids' in which) {
    for (let start = 0; start < which.ids.length; start += LIMITS.decisionsMax) {
      await call({ ids: which.ids.slice(start, start + LIMITS.decisionsMax) })
    }
  } else {
    while (await call({ toolName: which.tool, inputHash: which.input }));
  }
  return items
}

interface Given {
  decision: Decision
  reason: string | undefined
  confirmMismatch: boolean
}

function bodyOf({ decision, reason, confirmMismatch }: Given) {
  const confirmed = decision === 'APPROVED' && confirmMismatch
  return { decision, ...(reason === undefined ? {} : { reason }), ...(confirmed && { confirmMismatch }) }
}

const NOT_BY_YOU = new Map<string, string>([
  ['same_person', 'and you approved it first'],
  ['runs_agent', 'and you run the agent'],
  ['no_person', 'and no person made this token'],
])

function outcomeLine({ id, outcome, approval }: DecisionOutcome): string {
  if (approval === null) return `${id}  approval not found`
  const line = approvalLine(approval, Date.now())
  if (outcome === 'mismatch') return `${line}  (not decided: its input does not match; see --confirm-mismatch)`
  if (outcome === 'changed') return `${line}  (not decided: its input changed meanwhile; look at it again)`
  const notThem = NOT_BY_YOU.get(outcome)
  if (notThem !== undefined) return `${line}  (not decided: it needs two people, ${notThem})`
  return outcome === 'refused' ? `${line}  (not by this decision)` : line
}
