import type { ApprovalDetail } from '@tacho/contract/operator/approval.ts'
import type { ReactNode } from 'react'
import { Copy } from '../ui/copy.tsx'
import { bytes } from '../ui/format.ts'
import { JsonText } from '../ui/json-text.tsx'
import { Nothing, Section } from '../ui/section.tsx'

/** What the tool would get. The service sees only its hash, so the input is the agent's word. */
export function RecordedInput({ approval, children }: { approval: ApprovalDetail; children: ReactNode }) {
  const { inputPreview } = approval
  if (inputPreview === null) {
    return (
      <Section title="Input">
        <Nothing>
          The agent recorded no input, as in metadata-only mode. The decision holds for exactly one input: the one with
          the hash above.
        </Nothing>
        {children}
      </Section>
    )
  }
  const { json, isTruncated, isShortened } = inputPreview
  return (
    <Section
      title="Input"
      note={
        <span className="flex items-center gap-2">
          {bytes(inputPreview.bytes)} <Copy text={json} />
        </span>
      }
    >
      <div className="rounded-lg border border-line bg-side px-3 py-2">
        <JsonText json={json} />
      </div>
      <p className="mt-2 text-sm text-soft">
        As the agent recorded it, with secrets masked. The service cannot verify it.
        {isShortened && ' The agent shortened it to fit into an event.'}
        {isTruncated && ' Only its beginning is shown.'}
      </p>
      {children}
    </Section>
  )
}
