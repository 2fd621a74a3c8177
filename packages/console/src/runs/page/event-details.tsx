/** Parts of an event's content: a foldable line, a named value, an error, a decision. */
import { useState, type ReactNode } from 'react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { parsed, type Json } from '@tacho/contract/record/payload-reader.ts'
import { failureLine, failureOf, type Failure } from '@tacho/contract/issues/failure.ts'
import { JsonTree } from '../../web/text/json-view.tsx'
import { ApprovalStatusChip } from '../../approvals/approval-summary.tsx'
import { approvalQuery } from '../../approvals/queries.ts'
import { LongText } from '../../web/text/long-text.tsx'

/** Elements for the content of an event: a foldable line, and a named value. */

interface FoldedProps {
  title: string
  note: string
  aside?: ReactNode
  isFolded: boolean
  mono?: boolean
  children: ReactNode
}

/** A line that can be opened. Its content is not in the page while it is folded. */
export function Folded({ title, note, aside, isFolded, mono = false, children }: FoldedProps) {
  const [isOpen, setOpen] = useState(!isFolded)
  return (
    <div className="rounded-lg border border-line bg-raised">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
        className="flex w-full items-center gap-2 rounded-lg px-3 py-2 text-left text-sm hover:bg-hover"
      >
        <span aria-hidden className="text-soft">
          {isOpen ? '▾' : '▸'}
        </span>
        <bdi className={`max-w-[60%] shrink-0 truncate font-medium ${mono ? 'font-mono' : ''}`}>{title}</bdi>
        <bdi className={`min-w-0 flex-1 truncate text-soft ${mono ? 'font-mono text-xs' : ''}`}>{note}</bdi>
        {aside}
      </button>
      {isOpen && <div className="border-t border-line px-3 py-2.5">{children}</div>}
    </div>
  )
}

export function PayloadPart({ name, value }: { name: string; value: unknown }) {
  if (value === undefined) return null
  return (
    <section className="mt-2 first:mt-0">
      <p className="mb-0.5 text-xs font-medium text-soft">{name}</p>
      <JsonTree value={parsed(value)} />
    </section>
  )
}

/** The decision of a person on a call, with the reason. */

const route = getRouteApi('/w/$workspace/$environment')
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The approval that a client's event names. Renders nothing if it does not exist in this environment. */
export function Decided({ approvalId }: { approvalId: string }) {
  const { place } = route.useRouteContext()
  const params = route.useParams()
  const { data } = useQuery({
    ...approvalQuery(place.environment.id, approvalId),
    enabled: ID.test(approvalId),
    retry: false,
  })
  if (!data) return null
  const { status, decidedBy, decisionReason } = data
  return (
    <p className="mt-1.5 flex flex-wrap items-center gap-x-2 gap-y-1 text-sm">
      <Link to="/w/$workspace/$environment/approvals/$approvalId" params={{ ...params, approvalId }}>
        <ApprovalStatusChip status={status} />
      </Link>
      {decidedBy !== null && (
        <span className="text-soft">
          by <bdi>{decidedBy.name}</bdi>
        </span>
      )}
      {decisionReason !== null && <bdi className="[overflow-wrap:anywhere]">{decisionReason}</bdi>}
    </p>
  )
}

/** The error of an event: its class and message, its causes, its stack. */

interface Props {
  eventType: string
  label: string
  payload: Json
  /** Whether the text above already shows the error. */
  isSaid?: boolean
}

export function FailureDetails({ isSaid = false, ...event }: Props) {
  const failure = failureOf(event)
  if (failure === null) return null
  return (
    <div className="mt-2 flex flex-col gap-2 first:mt-0">
      <FailureSaid failure={failure} isSaid={isSaid} />
      <Stack stack={failure.stack} />
    </div>
  )
}

/** Class and message of a failure, then its causes. */
export function FailureSaid({ failure, isSaid = false }: { failure: Failure; isSaid?: boolean }) {
  const line = failureLine(failure, null)
  return (
    <>
      {!isSaid && line !== '' && (
        <p className="rounded-lg bg-red-wash px-3 py-2 font-medium [overflow-wrap:anywhere] text-red">{line}</p>
      )}
      {failure.causes.length > 0 && (
        <section>
          <h3 className="text-xs font-medium text-soft">Causes, the nearest first</h3>
          <ol className="text-sm">
            {failure.causes.map((cause, index) => (
              <li key={index} className="[overflow-wrap:anywhere]">
                <bdi>{failureLine(cause, null)}</bdi>
              </li>
            ))}
          </ol>
        </section>
      )}
    </>
  )
}

export function Stack({ stack }: { stack: string | null }) {
  if (stack === null) return null
  return (
    <section>
      <h3 className="mb-0.5 text-xs font-medium text-soft">Stack</h3>
      <div className="overflow-x-auto rounded-lg border border-line bg-side p-3">
        <LongText text={stack} mono />
      </div>
    </section>
  )
}
