/** What a person decided about a call, and why. */
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { ApprovalStatusChip } from '../../approvals/approval-status.tsx'
import { approvalQuery } from '../../approvals/queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** The id is the word of a client: nothing is shown if there is no such approval here. */
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
