import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { ShownText } from '../web/text/shown-text.tsx'

/** What would run, in one line. Nothing where no input is recorded. */
export function InputInShort({ of: { inputInShort } }: { of: ApprovalCard }) {
  if (inputInShort === null || inputInShort === '') return null
  return (
    <p title={inputInShort} className="mt-0.5 truncate font-mono text-xs [unicode-bidi:isolate]">
      <ShownText text={inputInShort} />
    </p>
  )
}
