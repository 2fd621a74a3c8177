/** Standing approvals, and how often each policy asks: people who are asked too often approve without reading. */
import type { ApprovalGrant } from '@tacho/contract/approvals/grant.ts'
import type { AskingPolicies } from '@tacho/contract/approvals/asking-policies.ts'
import { useMutation } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { duration, exact } from '../web/text/format.ts'
import { ShownText } from '../web/text/shown-text.tsx'
import { Button, More } from '../web/ui/button.tsx'
import { State } from '../web/ui/state.tsx'
import { Refused } from '../web/ui/states.tsx'
import { useAskingPolicies, type useGrants } from './queries.ts'

interface Props {
  environmentId: string
  list: ReturnType<typeof useGrants>
  mayRevoke: boolean
}

export function StandingList({ environmentId, list, mayRevoke }: Props) {
  const asked = useAskingPolicies(environmentId)
  return (
    <>
      <section aria-label="Standing approvals" className="border-b border-line">
        {list.items.length === 0 ? (
          <p className="px-4 py-3 text-sm text-soft">
            No standing approvals. A person who approves a request can also allow calls to come: the same input again,
            the tool in this run, or calls of the agent that fulfil a condition.
          </p>
        ) : (
          <ul>
            {list.items.map((grant) => (
              <Grant key={grant.id} environmentId={environmentId} grant={grant} mayRevoke={mayRevoke} />
            ))}
          </ul>
        )}
        <More list={list} label="Show older ones" />
      </section>
      {asked.data && <Asked asked={asked.data} />}
    </>
  )
}

const GRANT_WORDS: Record<ApprovalGrant['state'], string> = {
  in_use: 'In use',
  used_up: 'Used up',
  expired: 'Expired',
  revoked: 'Revoked',
  policy_changed: 'Its policy changed',
  run_ended: 'Its run ended',
}

function Grant({ environmentId, grant, mayRevoke }: Omit<Props, 'list'> & { grant: ApprovalGrant }) {
  const revoke = useMutation({
    mutationFn: () => api.revokeApprovalGrant({ params: { environmentId, grantId: grant.id } }),
  })
  const isInUse = grant.state === 'in_use'
  return (
    <li className="border-t border-line px-4 py-2.5 text-sm first:border-0">
      <p className="flex flex-wrap items-center gap-2">
        <bdi className="min-w-0 truncate font-mono font-medium">
          <ShownText text={grant.toolName} />
        </bdi>
        <State is={isInUse ? 'ACTIVE' : 'EXPIRED'}>{GRANT_WORDS[grant.state]}</State>
        {isInUse && mayRevoke && (
          <Button className="ml-auto" busy={revoke.isPending} onClick={() => revoke.mutate()}>
            Revoke
          </Button>
        )}
      </p>
      <p className="mt-0.5 [overflow-wrap:anywhere]">
        {grant.scope === 'condition' ? (
          <>
            where{' '}
            <code className="font-mono text-xs">
              <ShownText text={grant.condition ?? ''} />
            </code>
            , of <ShownText text={grant.agentId ?? ''} />
          </>
        ) : (
          <>
            {grant.scope === 'input' ? 'the same input' : 'any input'} in run <ShownText text={grant.runId ?? ''} />
          </>
        )}
      </p>
      <p className="text-soft">
        {grant.uses} of {grant.mostUses} calls, until {exact(Date.parse(grant.expiresAt))}, by{' '}
        <ShownText text={grant.grantedBy.name} />
      </p>
      <Refused error={revoke.error} />
    </li>
  )
}

function Asked({ asked: { items, capped } }: { asked: AskingPolicies }) {
  if (items.length === 0) return null
  return (
    <section aria-label="How often people are asked" className="px-4 py-3 text-sm">
      <h2 className="font-medium">How often people are asked, last 7 days</h2>
      <ul>
        {items.map((item) => (
          <li key={item.policyId ?? ''} className="mt-2">
            <p className="font-medium [overflow-wrap:anywhere]">
              <ShownText text={item.policyId ?? 'No policy is named'} />
            </p>
            <p className="text-soft">
              asked {item.requests}, approved {item.approved}, rejected {item.rejected}, unanswered {item.expired}
              {item.byGrant > 0 && `, by standing approvals ${item.byGrant}`}
            </p>
            {item.answerP50 !== null && (
              <p className="text-soft">
                answered within {duration(item.answerP50)} (half), {duration(item.answerP95 ?? 0)} (95 %)
              </p>
            )}
            {isTiring(item) && (
              <p className="text-amber">
                ! {item.quick} of {item.approved} approvals took at most 5 seconds. Ask less often, or allow what is
                always approved.
              </p>
            )}
          </li>
        ))}
      </ul>
      {capped && <p className="mt-2 text-soft">Only the newest requests are counted.</p>}
    </section>
  )
}

/** Whether a policy tires people: most requests were approved quickly, and few rejected. */
const isTiring = ({ approved, rejected, quick }: AskingPolicies['items'][number]): boolean =>
  approved >= 10 && quick * 2 > approved && rejected * 20 < approved
