import type { Decision } from '@tacho/contract/approval.ts'
import type { ApprovalCard, DecisionOutcome } from '@tacho/contract/operator/approval.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { api } from '../api.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { counted } from '../ui/format.ts'
import { Refused } from '../ui/refused.tsx'
import { ShownText } from '../ui/shown-text.tsx'
import { ApprovalStatusChip } from './approval-status.tsx'
import { approvalsKey } from './queries.ts'
import { groupsOf } from './waiting-list.tsx'

interface Props {
  environmentId: string
  approvals: readonly ApprovalCard[]
  onClose: () => void
  onDecided: () => void
}

/** Lists exactly what will be decided, and then what the server made of each. */
export function DecideMany({ environmentId, approvals, onClose, onDecided }: Props) {
  const cache = useQueryClient()
  const reason = useRef<HTMLInputElement>(null)
  const decide = useMutation({
    mutationFn: async (decision: Decision) => {
      const outcomes: DecisionOutcome[] = []
      // One decision covers one tool and input.
      for (const { items } of groupsOf(approvals)) {
        const ids = items.map(({ id }) => id)
        const body = { decision, reason: reason.current?.value.trim() || null, ids }
        outcomes.push(...(await api.decideApprovals({ params: { environmentId }, body })).items)
      }
      return new Map(outcomes.map((outcome) => [outcome.id, outcome]))
    },
    onSettled: () => cache.invalidateQueries({ queryKey: approvalsKey(environmentId) }),
  })
  const close = () => {
    if (decide.isSuccess) onDecided()
    onClose()
  }
  return (
    <Dialog title={`Decide ${counted(approvals.length, 'request')}`} onClose={close} className="w-full max-w-xl">
      <div className="flex max-h-[85dvh] flex-col">
        <h2 className="px-5 pt-5 text-lg font-semibold">
          {decide.isSuccess ? 'What was decided' : `Decide ${counted(approvals.length, 'request')}`}
        </h2>
        <ul
          aria-label="Requests"
          tabIndex={0}
          className="mx-5 mt-3 min-h-0 flex-1 overflow-y-auto rounded-lg border border-line"
        >
          {approvals.map((approval) => (
            <Row key={approval.id} approval={approval} outcome={decide.data?.get(approval.id)} />
          ))}
        </ul>
        <div className="flex flex-wrap gap-2 p-5">
          {decide.isSuccess ? (
            <Button look="accent" className="h-10 flex-1" onClick={close} autoFocus>
              Close
            </Button>
          ) : (
            <>
              <input
                ref={reason}
                aria-label="Reason for all"
                placeholder="Reason for all (optional)"
                maxLength={LIMITS.decisionReasonChars}
                className="field h-10 w-full text-base"
              />
              <Button className="h-10 flex-1" busy={decide.isPending} onClick={() => decide.mutate('REJECTED')}>
                Reject {approvals.length}
              </Button>
              <Button
                look="accent"
                className="h-10 flex-1"
                busy={decide.isPending}
                onClick={() => decide.mutate('APPROVED')}
              >
                Approve {approvals.length}
              </Button>
              <Refused error={decide.error} className="w-full" />
            </>
          )}
        </div>
      </div>
    </Dialog>
  )
}

function Row({ approval, outcome }: { approval: ApprovalCard; outcome: DecisionOutcome | undefined }) {
  return (
    <li className="flex items-center gap-3 border-b border-line px-3 py-2 text-sm last:border-0">
      <span className="min-w-0 flex-1">
        <bdi className="block truncate font-mono font-medium">
          <ShownText text={approval.toolName} />
        </bdi>
        <bdi className="block truncate text-soft">
          <ShownText text={approval.reason ?? approval.runId ?? approval.clientId} quoted={approval.reason !== null} />
        </bdi>
      </span>
      {outcome?.approval && <ApprovalStatusChip status={outcome.approval.status} />}
      {outcome?.outcome === 'refused' && <span className="text-amber">not by you</span>}
      {outcome?.outcome === 'not_found' && <span className="text-amber">no longer there</span>}
    </li>
  )
}
