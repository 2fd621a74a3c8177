import { StateText } from '../web/ui/state.tsx'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { counted } from '../web/text/format.ts'
import { Nothing, Section, Unread } from '../web/ui/section.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Skeleton } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { aftermathWord } from './aftermath.tsx'
import { approvalWord, ApprovalStatusChip } from './approval-summary.tsx'
import { useAftermath, useEarlier } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')

/** Earlier decisions on this tool, and what the agent did afterwards. */
export function Earlier({ environmentId, approval }: { environmentId: string; approval: ApprovalCard }) {
  const { data, error } = useEarlier(environmentId, approval, 'tool')
  const counts = data && Object.entries(data.counts).filter(([, count]) => count > 0)
  return (
    <Section
      title="Earlier requests for this tool"
      note={counts?.map(([status, count]) => `${count} ${status}`).join(' · ')}
      error={!data && error}
    >
      {!data ? (
        <Skeleton className="h-16" />
      ) : data.latest.length === 0 ? (
        <Nothing>This is the first.</Nothing>
      ) : (
        <ol>
          {data.latest.map((earlier) => (
            <EarlierRow
              key={earlier.id}
              environmentId={environmentId}
              earlier={earlier}
              isSameInput={earlier.inputHash === approval.inputHash}
            />
          ))}
        </ol>
      )}
    </Section>
  )
}

function DecidedWhy({ earlier: { decisionReason, decidedBy } }: { earlier: ApprovalCard }) {
  if (decisionReason !== null) return <ShownText text={decisionReason} quoted />
  return decidedBy ? <ShownText text={`by ${decidedBy.name}`} /> : 'not decided'
}

/** Earlier decisions on the same input, and other requests for it: approving could repeat an action. */
export function EarlierOnInput({ environmentId, approval }: { environmentId: string; approval: ApprovalCard }) {
  const params = route.useParams()
  const { data, error } = useEarlier(environmentId, approval, 'input')
  if (!data) return error ? <Unread /> : null
  const {
    latest: [latest],
    counts,
    waiting,
  } = data
  const isRepeat = approval.status === 'PENDING' && counts.approved + waiting > 0
  if (!latest && waiting === 0) return <p className="mt-2 text-sm text-soft">No other request had this input.</p>
  return (
    <div
      role="note"
      className={isRepeat ? 'mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm text-amber' : 'mt-2 text-sm'}
    >
      {isRepeat && <span aria-hidden>! </span>}
      {latest && (
        <>
          <span className="font-medium">Same input before:</span>{' '}
          {Object.entries(counts)
            .filter(([, count]) => count > 0)
            .map(([status, count]) => `${count} ${status}`)
            .join(', ')}
          . Last{' '}
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ ...params, approvalId: latest.id }}
            search={{ show: 'history' }}
            className="link underline"
          >
            {approvalWord(latest.status).toLowerCase()} <Time at={latest.decidedAt ?? latest.createdAt} />
          </Link>
          {latest.decidedBy && (
            <>
              {' by '}
              <bdi>
                <ShownText text={latest.decidedBy.name} />
              </bdi>
            </>
          )}
          {latest.decisionReason !== null && (
            <>
              : <ShownText text={latest.decisionReason} quoted />
            </>
          )}
          .{' '}
        </>
      )}
      {waiting > 0 && `${counted(waiting, 'other request')} with this input ${waiting === 1 ? 'waits' : 'wait'} too.`}
    </div>
  )
}

interface RowProps {
  environmentId: string
  earlier: ApprovalCard
  isSameInput: boolean
}

function EarlierRow({ environmentId, earlier, isSameInput }: RowProps) {
  const params = route.useParams()
  const { data } = useAftermath(environmentId, earlier.id)
  const aftermath = data && aftermathWord(data, earlier)
  return (
    <li className="relative flex flex-wrap items-center gap-x-3 gap-y-0.5 border-b border-line py-1.5 text-sm last:border-0 hover:bg-hover">
      <span className="w-24">
        <ApprovalStatusChip status={earlier.status} />
      </span>
      <Link
        to="/w/$workspace/$environment/approvals/$approvalId"
        params={{ ...params, approvalId: earlier.id }}
        search={{ show: 'history' }}
        className="min-w-0 flex-1 basis-40 truncate after:absolute after:inset-0"
      >
        <bdi>
          <DecidedWhy earlier={earlier} />
        </bdi>
        {isSameInput && <span className="text-soft"> · same input</span>}
      </Link>
      {aftermath &&
        (aftermath.fine ? (
          <span className="text-soft">{aftermath.text}</span>
        ) : (
          <StateText is="RAN_ANYWAY">{aftermath.text}</StateText>
        ))}
      <span className="text-soft">
        <Time at={earlier.createdAt} />
      </span>
    </li>
  )
}
