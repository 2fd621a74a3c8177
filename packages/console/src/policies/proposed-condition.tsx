/**
 * Proposes a narrower condition, computed from people's decisions: it asks least often and still covers every
 * rejection. A person can use it as a draft.
 */
import { percent } from '@tacho/contract/engine/format.ts'
import type { ProposedCondition } from '@tacho/contract/approvals/proposal.ts'
import { useMutation } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Refused } from '../web/ui/states.tsx'

interface Props {
  environmentId: string
  policyId: string
  onDraft: (condition: string) => void
}

export function LeastAsking({ environmentId, policyId, onDraft }: Props) {
  const search = useMutation({
    mutationFn: () => api.proposeCondition({ params: { environmentId, policyId } }),
  })
  const { data } = search
  return (
    <section className="mt-5 text-sm" aria-label="Least-asking condition">
      <Button look="quiet" busy={search.isPending} onClick={() => search.mutate()}>
        Find the least-asking condition
      </Button>
      <Refused error={search.error} />
      <div role="status">
        {data && !data.proposed && <p className="mt-2">Nothing is proposed: {data.why}.</p>}
        {data?.proposed && (
          <>
            <p className="mt-2">It would ask only if also</p>
            <code className="mt-1 block font-mono break-words">
              <bdi>{data.proposed.addition}</bdi>
            </code>
            <Effect proposed={data.proposed} approved={data.approved} rejected={data.rejected} />
            {data.caveats.map((caveat) => (
              <p key={caveat} className="mt-1 text-soft">
                {caveat}.
              </p>
            ))}
            <Button className="mt-2" onClick={() => onDraft(data.proposed?.condition ?? '')}>
              Use it in the draft
            </Button>
          </>
        )}
      </div>
    </section>
  )
}

function Effect({ proposed, approved, rejected }: { proposed: ProposedCondition; approved: number; rejected: number }) {
  const [share, low, high] = [proposed.share, proposed.low, proposed.high].map((fraction) => percent(fraction, 1))
  return (
    <p className="mt-1">
      Of {approved} approved calls, it would not have asked about {proposed.notAsked} ({share}; {low} to {high} of calls
      to come). It still asks about all {rejected} rejected ones.
    </p>
  )
}
