/** Whether the caller still waits for the answer, and whether this very call ran before. */
import { ranBeforeText, waitingText } from '@tacho/contract/approvals/approval-text.ts'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useNow } from '../web/text/times.tsx'

const route = getRouteApi('/w/$workspace/$environment')

/** Whether a person can decide the request. In all other states, a decision has no effect. */
export const needsPerson = ({ waiting: { state } }: Pick<ApprovalCard, 'waiting'>): boolean =>
  state === 'waiting' || state === 'unknown'

/** Lines for a list. */
export function WaitingLines({ of }: { of: Pick<ApprovalCard, 'waiting' | 'ranBefore'> }) {
  const now = useNow()
  const text = waitingText(of.waiting, now)
  return (
    <>
      {text !== null && <p className="mt-0.5 text-sm text-soft">– {text}</p>}
      {of.ranBefore && <p className="mt-0.5 text-sm font-medium text-amber">! {ranBeforeText(of.ranBefore, now)}</p>}
    </>
  )
}

/** Notes for the page of a request. */
export function WaitingNotes({ of }: { of: Pick<ApprovalCard, 'waiting' | 'ranBefore' | 'status'> }) {
  const params = route.useParams()
  const now = useNow()
  const { waiting, ranBefore, status } = of
  const text = status === 'EXPIRED' ? null : waitingText(waiting, now)
  const isOpen = status === 'PENDING'
  const isShown = text !== null && (isOpen || waiting.state === 'stopped')
  return (
    <>
      {isShown && (
        <p role="note" className="mt-3 rounded-lg bg-side px-3 py-2 text-sm font-medium">
          {isOpen ? 'Nobody waits for this decision any more' : 'Nobody waited for this decision'}: {text}.
          {waiting.state === 'stopped' &&
            (isOpen
              ? ' A decision runs nothing unless the agent asks again.'
              : ' Nothing runs unless the agent asks again.')}
        </p>
      )}
      {ranBefore && (
        <p role="note" className="mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm font-medium text-amber">
          ! {capital(ranBeforeText(ranBefore, now))}.{' '}
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ ...params, approvalId: ranBefore.approvalId }}
            search={{ show: 'history' }}
            className="link underline"
          >
            Show that request
          </Link>
        </p>
      )}
    </>
  )
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
