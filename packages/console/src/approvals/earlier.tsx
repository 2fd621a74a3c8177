import type { ApprovalCard } from '@tacho/contract/operator/approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Nothing, Section } from '../ui/section.tsx'
import { Skeleton } from '../ui/states.tsx'
import { Time } from '../ui/time.tsx'
import { aftermathWord } from './aftermath.tsx'
import { ApprovalStatusChip } from './approval-status.tsx'
import { useAftermath, useEarlier } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')

/** How people decided on this tool before, and what the agent did then. */
export function Earlier({ environmentId, approval }: { environmentId: string; approval: ApprovalCard }) {
  const { data } = useEarlier(environmentId, approval)
  const counts = data && Object.entries(data.counts).filter(([, count]) => count > 0)
  return (
    <Section
      title="Earlier requests for this tool"
      note={counts?.map(([status, count]) => `${count} ${status}`).join(' · ')}
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
        <bdi>{earlier.decisionReason ?? (earlier.decidedBy ? `by ${earlier.decidedBy.name}` : 'not decided')}</bdi>
        {isSameInput && <span className="text-soft"> · same input</span>}
      </Link>
      {aftermath && (
        <span className={aftermath.fine ? 'text-soft' : 'font-medium text-red'}>
          {aftermath.fine ? '' : '! '}
          {aftermath.text}
        </span>
      )}
      <span className="text-soft">
        <Time at={earlier.createdAt} />
      </span>
    </li>
  )
}
