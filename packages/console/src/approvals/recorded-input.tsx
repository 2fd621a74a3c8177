import type { ApprovalDetail } from '@tacho/contract/operator/approval.ts'
import { Copy } from '../ui/copy.tsx'
import { bytes } from '../ui/format.ts'
import { JsonTree } from '../ui/json-tree.tsx'
import { LongText } from '../ui/long-text.tsx'
import { Nothing, Section } from '../ui/section.tsx'

/** What the tool would get. The service sees only its hash, so the input is the agent's word. */
export function RecordedInput({ approval: { inputPreview } }: { approval: ApprovalDetail }) {
  if (inputPreview === null) {
    return (
      <Section title="Input">
        <Nothing>
          The agent recorded no input, as in metadata-only mode. The decision holds for exactly one input: the one with
          the hash above.
        </Nothing>
      </Section>
    )
  }
  const { json, isTruncated, isShortened } = inputPreview
  const value = isTruncated ? null : parse(json)
  return (
    <Section
      title="Input"
      note={
        <span className="flex items-center gap-2">
          {bytes(inputPreview.bytes)} <Copy text={json} />
        </span>
      }
    >
      {value === null ? <LongText text={json} mono /> : <JsonTree value={value.value} />}
      <p className="mt-2 text-sm text-soft">
        As the agent recorded it, with secrets masked. The service cannot verify it.
        {isShortened && ' The agent shortened it to fit into an event.'}
        {isTruncated && ' Only its beginning is shown.'}
      </p>
    </Section>
  )
}

function parse(json: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(json) }
  } catch {
    return null
  }
}
