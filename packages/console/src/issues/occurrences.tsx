import type { IssueRecord } from '@tacho/contract/issues/operator-issue-record.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { Button, More } from '../web/ui/button.tsx'
import { JsonTree } from '../web/text/json-view.tsx'
import { Refused, Skeleton } from '../web/ui/states.tsx'
import { Section } from '../web/ui/section.tsx'
import { Time } from '../web/text/times.tsx'
import { recordQuery, useAffectedAgents, useOccurrences } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/issues/$issueId')

/** Occurrences that the page shows at first, and adds with each click. A request reads more of them. */
const AT_ONCE = 5
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** The occurrences, latest first. Each opens to show the data from the client. */
export function Occurrences({ environmentId, issueId }: { environmentId: string; issueId: string }) {
  const list = useOccurrences(environmentId, issueId)
  const [shown, setShown] = useState(AT_ONCE)
  const agents = useAffectedAgents(environmentId, issueId)
  const names = new Map(agents.items.map(({ agentId, name }) => [agentId, name]))
  return (
    <Section title="Occurrences">
      {list.error ? <Refused error={list.error} /> : list.isPending && <Skeleton className="h-24" />}
      <ul>
        {list.items.slice(0, shown).map((record) => (
          <Occurrence
            key={record.id}
            environmentId={environmentId}
            record={record}
            agentName={names.get(record.agentId) ?? record.agentId}
          />
        ))}
      </ul>
      <More
        list={{
          ...list,
          hasNextPage: list.hasNextPage || list.items.length > shown,
          async fetchNextPage() {
            setShown(shown + AT_ONCE)
            if (list.items.length < shown + AT_ONCE && list.hasNextPage) await list.fetchNextPage()
          },
        }}
        label="Show older occurrences"
      />
    </Section>
  )
}

interface OccurrenceProps {
  environmentId: string
  record: IssueRecord
  agentName: string
}

function Occurrence({ environmentId, record, agentName }: OccurrenceProps) {
  const params = route.useParams()
  const [isOpen, setOpen] = useState(false)
  return (
    <li className="border-b border-line py-1.5 text-sm last:border-0">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-0.5">
        <Button
          look="quiet"
          className="h-6 w-6 px-0"
          aria-expanded={isOpen}
          aria-label={isOpen ? 'Hide what was reported' : 'Show what was reported'}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? '▾' : '▸'}
        </Button>
        <Link
          to="/w/$workspace/$environment/issues/$issueId"
          params={params}
          search={{ occurrence: record.id }}
          title="Show this occurrence above"
          className="link w-20"
        >
          <Time at={record.detectedAt} />
        </Link>
        <span className="flex max-w-48 min-w-0">
          <bdi className="min-w-0 truncate" title={record.agentId}>
            {agentName}
          </bdi>
        </span>
        {record.runId !== null &&
          (record.internalRunId === null ? (
            <bdi className="min-w-0 flex-1 truncate text-soft" title="No event of this run has been recorded">
              {record.runId}
            </bdi>
          ) : (
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId: record.runId }}
              search={record.internalEventId !== null && record.eventId !== null ? { step: record.eventId } : {}}
              className="link min-w-0 flex-1 truncate"
            >
              <bdi>{record.runId}</bdi>
            </Link>
          ))}
      </div>
      {isOpen && (
        <div className="py-2 pl-8">
          <Reported environmentId={environmentId} recordId={record.id} />
        </div>
      )}
    </li>
  )
}

/** Data that the client sent with a record, or that the service noted. */
export function Reported({ environmentId, recordId }: { environmentId: string; recordId: string }) {
  const params = route.useParams()
  const { data, error } = useQuery(recordQuery(environmentId, recordId))
  if (error) return <Refused error={error} />
  if (!data) return <Skeleton className="h-16" />
  const approvalId = data.evidence['approvalId']
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <ReportedPart name="Payload" value={data.payload} />
      <ReportedPart name="Evidence" value={data.evidence}>
        {typeof approvalId === 'string' && UUID.test(approvalId) && (
          <Link
            to="/w/$workspace/$environment/approvals/$approvalId"
            params={{ ...params, approvalId }}
            search={{ show: 'history' }}
            className="link text-sm"
          >
            Open the approval
          </Link>
        )}
      </ReportedPart>
    </div>
  )
}

function ReportedPart({ name, value, children }: { name: string; value: object; children?: ReactNode }) {
  if (Object.keys(value).length === 0) return null
  return (
    <div className="min-w-0">
      <p className="text-xs font-medium text-soft">{name}</p>
      <JsonTree value={value} />
      {children}
    </div>
  )
}
