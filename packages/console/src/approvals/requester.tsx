import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { ShownText } from '../web/text/shown-text.tsx'

type Asked = Pick<OperatorApproval, 'agentId' | 'agentName' | 'clientId'>

/** Who asked: the agent by its name, or the client that named no agent. */
export function requesterOf({ agentId, agentName, clientId }: Asked): string {
  return agentName ?? agentId ?? clientId
}

export function Requester({ of }: { of: Asked }) {
  return (
    <bdi className="min-w-0 truncate" title={of.agentId ?? of.clientId}>
      <ShownText text={requesterOf(of)} />
    </bdi>
  )
}
