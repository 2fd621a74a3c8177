import type { Decision } from '@tacho/contract/approval.ts'
import type { ApprovalDetail } from '@tacho/contract/operator/approval.ts'
import { LIMITS } from '@tacho/contract/limits.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { meQuery } from '../queries.ts'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.ts'
import { Refused } from '../ui/refused.tsx'
import { ShownText } from '../ui/shown-text.tsx'
import { approvalsKey } from './queries.ts'
import { decideApproval, type Verdict } from './verdict.ts'

/** Below the request, within reach of a thumb. The page then shows what the server says, never what was hoped. */
export function Decide({ environmentId, approval }: { environmentId: string; approval: ApprovalDetail }) {
  const cache = useQueryClient()
  const { data: me } = useQuery(meQuery)
  const decide = useMutation({
    mutationFn: (body: { decision: Decision; reason: string | null }) =>
      decideApproval({ environmentId, approvalId: approval.id }, body, me?.id),
    // Also after a refusal: another person may have decided first.
    onSettled: () => cache.invalidateQueries({ queryKey: approvalsKey(environmentId) }),
  })
  const isOpen = approval.status === 'PENDING' && decide.data?.counted !== true
  if (!isOpen && !decide.data && !decide.error) return null
  return (
    <div className="border-t border-line bg-side px-4 py-3 sm:px-6">
      {decide.data && <Said verdict={decide.data} />}
      <Refused error={decide.error} />
      {isOpen && (
        <DecisionForm
          busy={decide.isPending}
          deciders={approval.deciders}
          me={me?.id}
          onDecide={(decision, reason) => decide.mutate({ decision, reason })}
        />
      )}
    </div>
  )
}

function Said({ verdict: { counted, text } }: { verdict: Verdict }) {
  return (
    <p
      role={counted ? 'status' : 'alert'}
      className={`py-1 text-sm font-medium ${counted ? 'text-green' : 'text-red'}`}
    >
      <span aria-hidden>{counted ? '✓' : '!'}</span> <ShownText text={text} />
    </p>
  )
}

interface FormProps {
  busy: boolean
  deciders: ApprovalDetail['deciders']
  me: string | undefined
  onDecide: (decision: Decision, reason: string | null) => void
}

function DecisionForm({ busy, deciders, me, onDecide }: FormProps) {
  const reason = useRef<HTMLInputElement>(null)
  const approve = useRef<HTMLButtonElement>(null)
  const reject = useRef<HTMLButtonElement>(null)
  const decide = (decision: Decision) => onDecide(decision, reason.current?.value.trim() || null)
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
      className="flex flex-wrap items-center gap-2"
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
        busy={busy}
        onClick={() => decide('REJECTED')}
      >
        Reject
      </Button>
      <Button
        ref={approve}
        look="accent"
        className="h-11 flex-1 sm:h-10 sm:flex-none sm:px-5"
        busy={busy}
        onClick={() => decide('APPROVED')}
      >
        Approve
      </Button>
      <Others deciders={deciders} me={me} />
    </form>
  )
}

/** Who else can decide, for a person who should not. */
export function Others({ deciders, me }: { deciders: ApprovalDetail['deciders']; me: string | undefined }) {
  if (deciders === null) return null
  const others = deciders.people.filter(({ id }) => id !== me).map(({ name }) => name)
  const said = [...others.slice(0, NAMED), ...(others.length > NAMED || deciders.more ? ['others'] : [])]
  const nobody = deciders.people.length > 0 ? 'Only you can decide this.' : 'Nobody else can decide this.'
  return (
    <p className="w-full text-xs text-soft">
      {said.length === 0 ? nobody : <ShownText text={`Can also decide: ${said.join(', ')}.`} />}
    </p>
  )
}

const NAMED = 5
