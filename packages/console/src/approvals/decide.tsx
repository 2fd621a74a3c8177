import type { Decision } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import type { NewDecision } from '@tacho/contract/approvals/approval-decision.ts'
import { approveText } from '@tacho/contract/approvals/sentence-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { inShort } from '@tacho/contract/record/payload-reader.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useLayoutEffect, useRef, useState, type MouseEvent } from 'react'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Copy } from '../web/ui/copy.tsx'
import { forgetDraft, useDraftState } from '../web/ui/draft-state.ts'
import { useKeys } from '../web/ui/keys.ts'
import { Refused } from '../web/ui/states.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { AndAlso, bodyOfAlso, type Also } from './and-also.tsx'
import {
  currentVerdict,
  decideApproval,
  endingOf,
  isUnderWay,
  useDecision,
  type SentDecision,
  type Verdict,
} from './decision.ts'
import { useEarlier } from './queries.ts'

/**
 * Buttons and notes for a decision, below the request, within reach of a thumb. They show only what the server
 * confirmed.
 */
export function Decide({ environmentId, approval }: { environmentId: string; approval: ApprovalDetail }) {
  const cache = useQueryClient()
  const { data: me } = useQuery(meQuery)
  const sent = useDecision(approval.id)
  const verdict = sent && currentVerdict(sent, approval, me?.id)
  const isOpen = approval.status === 'PENDING' && verdict?.counted !== true
  const draftName = `reason ${approval.id}`
  const written = useDraftState<string>(draftName, sent?.reason ?? '')
  useEffect(() => {
    if (verdict?.counted) forgetDraft(draftName)
  }, [verdict?.counted, draftName])
  const [wasOpen, setWasOpen] = useState(isOpen)
  if (isOpen && !wasOpen) setWasOpen(true)
  if (!isOpen && !verdict && !sent?.error) {
    if (!wasOpen) return null
    return (
      <EndedMeanwhile
        text={endingOf(approval, me?.id)}
        reason={written.value.trim()}
        onDone={() => setWasOpen(false)}
      />
    )
  }
  return (
    <div className="border-t border-line bg-side px-4 py-3 sm:px-6">
      {sent && <OnTheWay sent={sent} />}
      {verdict && <Said verdict={verdict} />}
      <Refused error={sent?.error} />
      {isOpen && (
        <DecisionForm
          environmentId={environmentId}
          approval={approval}
          sent={sent}
          reason={written.value}
          onReason={written.set}
          deciders={approval.deciders}
          me={me?.id}
          isFirst={approval.firstApproval !== null && approval.firstApproval.by.id === me?.id}
          mismatch={approval.inputPreview?.check.result === 'does_not_match'}
          onDecide={(body) => {
            const seen = { ...body, seenInput: approval.inputPreview?.eventId ?? null }
            void decideApproval(cache, { environmentId, me: me?.id }, approval.id, seen)
          }}
        />
      )}
    </div>
  )
}

interface EndedProps {
  text: string
  /** The reason that the person had written, although the decision is no longer needed. */
  reason: string
  onDone: () => void
}

/** Shown if the request was decided or expired while this person was reading or writing. */
function EndedMeanwhile({ text, reason, onDone }: EndedProps) {
  const note = useRef<HTMLDivElement>(null)
  // Focus this note, because the focused form has disappeared.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) note.current?.focus()
  }, [])
  return (
    <div ref={note} role="alert" tabIndex={-1} className="border-t border-line bg-side px-4 py-3 text-sm sm:px-6">
      <p className="font-medium text-amber">
        <span aria-hidden>! </span>
        <ShownText text={text} /> Nothing of yours was sent.
      </p>
      {reason !== '' && (
        <p className="mt-1">
          You wrote: <ShownText text={reason} quoted /> <Copy text={reason} label="Copy what you wrote" />
        </p>
      )}
      <Button look="quiet" className="mt-1" onClick={onDone}>
        Done
      </Button>
    </div>
  )
}

/** Shown while there is no reply. */
function OnTheWay({ sent: { phase, decision } }: { sent: SentDecision }) {
  const verb = decision === 'APPROVED' ? 'approval' : 'rejection'
  const text =
    phase === 'sending'
      ? `Sending your ${verb}…`
      : phase === 'not_sent'
        ? `Not sent: this device is offline. Your ${verb} is not kept for later. You can decide again once the service says what is true.`
        : phase === 'unknown'
          ? `No answer: it is not known whether your ${verb} was saved. Asking the service what is true before you can decide again…`
          : null
  if (text === null) return null
  return (
    <p
      role={phase === 'sending' ? 'status' : 'alert'}
      className={`py-1 text-sm font-medium ${phase === 'sending' ? 'text-soft' : 'text-amber'}`}
    >
      {phase !== 'sending' && <span aria-hidden>! </span>}
      {text}
    </p>
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
  environmentId: string
  approval: ApprovalDetail
  /** The latest decision on the request. */
  sent: SentDecision | null
  /** The reason survives a reload, a sign-in and a visit to another page. */
  reason: string
  onReason: (text: string) => void
  deciders: ApprovalDetail['deciders']
  me: string | undefined
  /** Whether this person approved and another one must approve too. */
  isFirst: boolean
  /** Whether the input shown is not the one that would run. */
  mismatch: boolean
  onDecide: (body: NewDecision) => void
}

function DecisionForm({
  environmentId,
  approval,
  sent,
  reason,
  onReason,
  deciders,
  me,
  isFirst,
  mismatch,
  onDecide,
}: FormProps) {
  const reasonField = useRef<HTMLInputElement>(null)
  const approve = useRef<HTMLButtonElement>(null)
  const reject = useRef<HTMLButtonElement>(null)
  const isBusy = isUnderWay(sent)
  const [isConfirming, setConfirming] = useState(false)
  const [also, setAlso] = useState<Also>(null)
  const isRepeat = (useEarlier(environmentId, approval, 'input').data?.counts.approved ?? 0) > 0
  const decide = (decision: Decision) => {
    if (mismatch && decision === 'APPROVED' && !isConfirming) return setConfirming(true)
    const isMismatch = mismatch && decision === 'APPROVED'
    setConfirming(false)
    onDecide({
      decision,
      reason: reason.trim() || null,
      ...(isMismatch && { confirmMismatch: true }),
      ...(decision === 'APPROVED' && also && { grant: bodyOfAlso(also) }),
    })
  }
  // A key only focuses the button; Enter decides.
  useKeys({
    a: { name: 'Approve (Enter decides)', act: () => approve.current?.focus() },
    r: { name: 'Reject (Enter decides)', act: () => reject.current?.focus() },
    e: { name: 'Write a reason', act: () => reasonField.current?.focus() },
  })
  return (
    <form
      aria-label="Decision"
      onSubmit={(event) => event.preventDefault()}
      className="flex flex-wrap items-center gap-2"
    >
      <input
        ref={reasonField}
        value={reason}
        onChange={(event) => onReason(event.target.value)}
        aria-label="Reason"
        placeholder="Reason, for the agent and the audit log (optional)"
        maxLength={LIMITS.decisionReasonChars}
        onKeyDown={(event) => event.key === 'Escape' && event.currentTarget.blur()}
        className="field h-11 w-full text-base sm:h-10 sm:w-auto sm:flex-1"
      />
      <Button
        ref={reject}
        className="h-11 flex-1 sm:h-10 sm:flex-none sm:px-5"
        busy={isBusy}
        onClick={(event) => isFirstClick(event) && decide('REJECTED')}
      >
        Reject
      </Button>
      {!isFirst && (
        <Button
          ref={approve}
          look="accent"
          className="h-auto min-h-11 flex-[2] [overflow-wrap:anywhere] whitespace-normal sm:min-h-10 sm:flex-none sm:px-5"
          busy={isBusy}
          onClick={(event) =>
            isFirstClick(event) && event.currentTarget.form?.reportValidity() !== false && decide('APPROVED')
          }
        >
          {isConfirming ? (
            'Approve the input that is not shown'
          ) : (
            <ShownText text={buttonText(approval, also, isRepeat)} />
          )}
        </Button>
      )}
      {isConfirming && (
        <p role="alert" className="w-full text-sm font-semibold text-red">
          <span aria-hidden>✕ </span>The input above does not match what the agent asked for: the tool would run with
          another input, which nobody can see here. Approve it all the same?{' '}
          <Button look="quiet" onClick={() => setConfirming(false)}>
            Not now
          </Button>
        </p>
      )}
      {!isFirst && !mismatch && <AndAlso approval={approval} also={also} onChange={setAlso} />}
      <Others deciders={deciders} me={me} />
    </form>
  )
}

/**
 * False for the second click of a double click. It would confirm a warning before anybody can read it, or decide the
 * next request.
 */
const isFirstClick = ({ detail }: MouseEvent): boolean => detail < 2

/** Label of the button: only “Approve” if the input shown does not match the input that would run. */
function buttonText(
  { sentence, inputCheck, approvers, firstApproval }: ApprovalDetail,
  also: Also,
  isRepeat: boolean,
): string {
  const text = inShort(inputCheck?.result === 'does_not_match' ? 'Approve' : approveText(sentence), BUTTON_CHARS)
  const person = approvers === 2 ? ` (${firstApproval === null ? 1 : 2} of 2)` : ''
  const again = isRepeat ? ' again' : ''
  return also === null ? `${text}${again}${person}` : `${text}${again} and ${also.uses} calls to come`
}

const BUTTON_CHARS = 60

/** Lists who else can decide: people with the role, and programs with a token. */
export function Others({ deciders, me }: { deciders: ApprovalDetail['deciders']; me: string | undefined }) {
  if (deciders === null) return null
  const { people, more, tokens } = deciders
  const others = people.filter(({ id }) => id !== me).map(({ name }) => name)
  const decisionText = [
    ...others.slice(0, NAMED),
    ...(others.length > NAMED || more ? ['others'] : []),
    ...(tokens > 0 ? [`programs with ${tokens === 1 ? 'an operator token' : `${tokens} operator tokens`}`] : []),
  ]
  const nobody = people.length > 0 ? 'Only you can decide this.' : 'Nobody else can decide this.'
  return (
    <p className="w-full text-xs text-soft">
      {decisionText.length === 0 ? nobody : <ShownText text={`Can also decide: ${decisionText.join(', ')}.`} />}
    </p>
  )
}

const NAMED = 5
