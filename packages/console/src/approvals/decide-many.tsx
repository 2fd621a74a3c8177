import type { Decision } from '@tacho/contract/approvals/approval.ts'
import type { ApprovalCard, ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import { amountIn } from '@tacho/contract/approvals/sentence-text.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Dialog } from '../web/ui/overlay.tsx'
import { counted } from '../web/text/format.ts'
import { Refused } from '../web/ui/states.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Time } from '../web/text/times.tsx'
import { ApprovalStatusChip, Requester } from './approval-summary.tsx'
import { decideTogether, isBeingDecided, isUnderWay, leaveOut, useDecision } from './decision.ts'
import { differencesOf, type InputPart } from './input-values.ts'
import { approvalQuery } from './queries.ts'
import { WaitingLines } from './caller-state.tsx'
import { groupsOf } from './waiting-list.tsx'

interface Props {
  environmentId: string
  approvals: readonly ApprovalCard[]
  onClose: () => void
  onDecided: () => void
}

/** Inputs are read for at most this many requests; others show only their line in the list. */
const INPUTS_READ = 50

/**
 * Shows what will be decided, who asks, and how the requests differ. After the decision, it shows the result of each
 * request.
 */
export function DecideMany({ environmentId, approvals, onClose, onDecided }: Props) {
  const cache = useQueryClient()
  const { data: me } = useQuery(meQuery)
  const reason = useRef<HTMLInputElement>(null)
  // Leave out requests that show another input than the one that would run: each must be approved on its own page.
  const approvable = approvals.filter(({ inputCheck }) => inputCheck?.result !== 'does_not_match')
  const decide = useMutation({
    mutationFn: async (decision: Decision) => {
      const body = { decision, reason: reason.current?.value.trim() || null }
      // False once the reply to a decision was lost. One decision covers one tool and input.
      let isHeard = true
      for (const { items } of groupsOf(decision === 'APPROVED' ? approvable : approvals)) {
        const ids = items.map(({ id }) => id)
        const seenInputs = items.flatMap((item) =>
          seenOf(item, cache.getQueryData(approvalQuery(environmentId, item.id).queryKey)),
        )
        const seen = { ...body, seenInputs }
        if (isHeard) isHeard = await decideTogether(cache, { environmentId, me: me?.id }, ids, seen)
        else leaveOut(cache, ids, body)
      }
    },
  })
  const close = () => {
    if (decide.isSuccess) onDecided()
    onClose()
  }
  const [amount, otherAmount] = new Set(approvable.map(({ sentence }) => amountIn(sentence)))
  const title = `Decide ${counted(approvals.length, 'request')}`
  const isHeld = !decide.isPending && approvals.some(({ id }) => isBeingDecided(cache, id))
  return (
    <Dialog title={title} onClose={close} className="w-full max-w-2xl">
      <div className="flex max-h-[85dvh] flex-col">
        <h2 className="px-5 pt-5 text-lg font-semibold">{decide.isSuccess ? 'What was decided' : title}</h2>
        <div
          role="group"
          aria-label="Requests"
          tabIndex={0}
          className="mx-5 mt-3 min-h-0 flex-1 overflow-y-auto rounded-lg border border-line"
        >
          {toolsOf(approvals).map(({ toolName, items }) => (
            <Tool
              key={toolName}
              environmentId={environmentId}
              toolName={toolName}
              items={items}
              isDecided={!decide.isIdle}
            />
          ))}
        </div>
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
              <Button
                className="h-10 flex-1"
                busy={decide.isPending || isHeld}
                onClick={() => decide.mutate('REJECTED')}
              >
                Reject {approvals.length}
              </Button>
              <Button
                look="accent"
                className="h-10 flex-1"
                disabled={approvable.length === 0}
                busy={decide.isPending || isHeld}
                onClick={() => decide.mutate('APPROVED')}
              >
                Approve {approvable.length}
                {otherAmount === undefined && amount && <ShownText text={` × ${amount}`} />}
              </Button>
              <Refused error={decide.error} className="w-full" />
            </>
          )}
        </div>
      </div>
    </Dialog>
  )
}

/**
 * The input events that the decision reports as seen. Without a request's detail, it can only report that no input was
 * recorded.
 */
function seenOf({ id, inputCheck }: ApprovalCard, detail: ApprovalDetail | undefined) {
  if (detail) return [{ id, eventId: detail.inputPreview?.eventId ?? null }]
  return inputCheck?.reason === 'not_recorded' ? [{ id, eventId: null }] : []
}

function toolsOf(approvals: readonly ApprovalCard[]): { toolName: string; items: ApprovalCard[] }[] {
  const tools = new Map<string, ApprovalCard[]>()
  for (const approval of approvals) tools.set(approval.toolName, [...(tools.get(approval.toolName) ?? []), approval])
  return [...tools].map(([toolName, items]) => ({ toolName, items }))
}

interface ToolProps {
  environmentId: string
  toolName: string
  items: readonly ApprovalCard[]
  isDecided: boolean
}

function Tool({ environmentId, toolName, items, isDecided }: ToolProps) {
  const details = useQueries({
    queries: items.slice(0, INPUTS_READ).map(({ id }) => ({ ...approvalQuery(environmentId, id), staleTime: 5_000 })),
  })
  const isRead = details.every(({ isPending }) => !isPending)
  const { same, own } = differencesOf(
    items.map((_, at) => {
      const shown = details[at]?.data?.inputPreview
      // Null, and so different from all others, if another input would run than the list shows.
      return shown && shown.check.result !== 'does_not_match' ? shown.json : null
    }),
  )
  const isOne = new Set(items.map(({ inputHash }) => inputHash)).size === 1
  return (
    <section aria-label={toolName} className="border-b border-line last:border-0">
      <header className="bg-side px-3 py-2 text-sm">
        <bdi className="font-mono font-medium [overflow-wrap:anywhere]">
          <ShownText text={toolName} />
        </bdi>
        <span className="text-soft">
          {' '}
          · {counted(items.length, 'request')}
          {items.length > 1 && (isOne ? ', all with the same input' : ', with different inputs')}
        </span>
        {isRead && same.length > 0 && <Parts label={items.length > 1 ? 'The same in all' : 'Input'} parts={same} />}
      </header>
      <ul>
        {items.map((approval, at) => (
          <Row key={approval.id} approval={approval} own={isRead ? own[at] : []} isDecided={isDecided} />
        ))}
      </ul>
    </section>
  )
}

function Parts({ label, parts }: { label: string; parts: readonly InputPart[] }) {
  return (
    <dl aria-label={label} className="mt-1 flex flex-wrap gap-x-3 gap-y-0.5 font-mono text-xs">
      {parts.map(({ name, text }) => (
        <div key={name} className="flex max-w-full min-w-0 gap-1">
          {name !== '' && (
            <dt className="text-soft">
              <bdi>
                <ShownText text={name} />
              </bdi>
            </dt>
          )}
          <dd className="line-clamp-3 min-w-0 font-medium [overflow-wrap:anywhere] [unicode-bidi:isolate]" title={text}>
            <ShownText text={text} />
          </dd>
        </div>
      ))}
    </dl>
  )
}

interface RowProps {
  approval: ApprovalCard
  /** The parts that only this input has. Null: there is no complete input to compare. */
  own: readonly InputPart[] | null | undefined
  isDecided: boolean
}

function Row({ approval, own, isDecided }: RowProps) {
  return (
    <li className="border-t border-line px-3 py-2 text-sm first:border-0">
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">
          <Requester of={approval} />
        </span>
        <span className="text-soft">
          {approval.runId !== null && (
            <>
              in{' '}
              <bdi className="[overflow-wrap:anywhere]">
                <ShownText text={approval.runId} />
              </bdi>
              ,{' '}
            </>
          )}
          <Time at={approval.createdAt} />
        </span>
        {isDecided && <Outcome approvalId={approval.id} />}
      </p>
      {own === null || own === undefined ? (
        <p className="mt-0.5 line-clamp-2 font-mono text-xs [overflow-wrap:anywhere]">
          {approval.inputInShort ? <ShownText text={approval.inputInShort} /> : 'No input is recorded.'}
        </p>
      ) : (
        own.length > 0 && <Parts label="Differs" parts={own} />
      )}
      {approval.inputCheck?.result === 'does_not_match' && (
        <p className="mt-0.5 font-semibold text-red">
          <span aria-hidden>✕ </span>This input does not match what the agent asked for. Approving leaves it out.
        </p>
      )}
      <WaitingLines of={approval} />
      {approval.reason !== null && (
        <p className="mt-0.5 line-clamp-2 text-soft [overflow-wrap:anywhere] [unicode-bidi:isolate]">
          <ShownText text={approval.reason} quoted />
        </p>
      )}
    </li>
  )
}

/** The result of the decision for one request. */
function Outcome({ approvalId }: { approvalId: string }) {
  const sent = useDecision(approvalId)
  if (sent === null) return null
  const { phase, verdict, error, decision } = sent
  const text =
    phase === 'not_sent'
      ? 'not sent: this device is offline'
      : phase === 'unknown'
        ? 'no answer: asking the service whether it was saved'
        : isUnderWay(sent)
          ? 'sending…'
          : null
  return (
    <span role="status" className="ml-auto text-amber">
      {text ??
        (verdict?.isFirst ? (
          'approved by you; another person must approve it too'
        ) : verdict?.counted ? (
          <ApprovalStatusChip status={decision} />
        ) : verdict ? (
          <>not by you: {verdict.text.replace(/^Your decision did not count\. /, '')}</>
        ) : (
          <Refused error={error} />
        ))}
    </span>
  )
}
