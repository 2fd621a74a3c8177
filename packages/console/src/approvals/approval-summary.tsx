/** The summary of a request in every list: its status, who asked, and the input in short. */
import type { ApprovalStatus } from '@tacho/contract/approvals/approval.ts'
import type { OperatorApproval, ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { saysInput } from '@tacho/contract/approvals/sentence-text.ts'
import { State } from '../web/ui/state.tsx'
import { stateWord } from '../web/text/state-styles.ts'
import { ShownText } from '../web/text/shown-text.tsx'

export const ApprovalStatusChip = ({ status }: { status: ApprovalStatus }) => <State is={status} />

export const approvalWord = (status: ApprovalStatus): string => stateWord(status)

type Asked = Pick<OperatorApproval, 'agentId' | 'agentName' | 'clientId'>

/** The requester: the agent by its name, or the client if it named no agent. */
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

/**
 * The sentence about a call: `Refund 917 EUR · A-74932`. Each part is isolated, so that Arabic text in one part does
 * not move the others.
 */
export function Sentence({
  of: { toolName, sentence },
}: {
  of: Pick<OperatorApproval, 'toolName'> & Partial<ApprovalCard>
}) {
  if (sentence === undefined || sentence.length === 0) {
    return (
      <bdi className="font-mono">
        <ShownText text={toolName} />
      </bdi>
    )
  }
  return sentence.map(({ kind, text }, at) => (
    // The index is the key, because parts have no other identity.
    <bdi key={at} className={kind === 'amount' ? 'tabular font-bold' : ''}>
      <ShownText text={text} />
    </bdi>
  ))
}

/** The tool by its exact name, below the sentence. */
export function ToolName({ of: { toolName } }: { of: Pick<OperatorApproval, 'toolName'> }) {
  return (
    <bdi className="min-w-0 truncate font-mono text-xs" title={toolName}>
      <ShownText text={toolName} />
    </bdi>
  )
}

/** The beginning of the input, if the sentence does not contain it. */
export function InputInShort({ of: { inputInShort, sentence } }: { of: ApprovalCard }) {
  if (inputInShort === null || inputInShort === '' || saysInput(sentence)) return null
  return (
    <p title={inputInShort} className="mt-0.5 truncate font-mono text-xs [unicode-bidi:isolate]">
      <ShownText text={inputInShort} />
    </p>
  )
}
