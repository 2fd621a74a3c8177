import type { Decision } from '@tacho/contract/approval.ts'
import type { ApprovalDetail } from '@tacho/contract/operator/approval.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { api } from '../api.ts'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.ts'
import { Refused } from '../ui/refused.tsx'
import { approvalsKey } from './queries.ts'

/** Below the request, within reach of a thumb. The page then shows what the server says, never what was hoped. */
export function Decide({ environmentId, approval }: { environmentId: string; approval: ApprovalDetail }) {
  const cache = useQueryClient()
  const reason = useRef<HTMLInputElement>(null)
  const decide = useMutation({
    mutationFn: (decision: Decision) =>
      api.decideApproval({
        params: { environmentId, approvalId: approval.id },
        body: { decision, reason: reason.current?.value.trim() || null },
      }),
    // Also after a refusal: another person may have decided first.
    onSettled: () => cache.invalidateQueries({ queryKey: approvalsKey(environmentId) }),
  })
  const approve = useRef<HTMLButtonElement>(null)
  const reject = useRef<HTMLButtonElement>(null)
  // A key moves to the button; Enter decides.
  useKeys({
    a: { name: 'Approve (Enter decides)', act: () => approve.current?.focus() },
    r: { name: 'Reject (Enter decides)', act: () => reject.current?.focus() },
    e: { name: 'Write a reason', act: () => reason.current?.focus() },
  })
  return (
    <form
      aria-label="Decision"
      onSubmit={(event) => event.preventDefault()}
      className="flex flex-wrap items-center gap-2 border-t border-line bg-side px-4 py-3 sm:px-6"
    >
      <input
        ref={reason}
        aria-label="Reason"
        placeholder="Reason, for the agent and the audit log (optional)"
        maxLength={LIMITS.decisionReasonChars}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="field h-11 w-full text-base sm:h-10 sm:w-auto sm:flex-1"
      />
      <Button
        ref={reject}
        className="h-11 flex-1 sm:h-10 sm:flex-none sm:px-5"
        busy={decide.isPending}
        onClick={() => decide.mutate('REJECTED')}
      >
        Reject
      </Button>
      <Button
        ref={approve}
        look="accent"
        className="h-11 flex-1 sm:h-10 sm:flex-none sm:px-5"
        busy={decide.isPending}
        onClick={() => decide.mutate('APPROVED')}
      >
        Approve
      </Button>
      <Refused error={decide.error} className="w-full" />
    </form>
  )
}
