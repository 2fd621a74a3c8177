import { inputCheckText } from '@tacho/contract/approvals/approval-text.ts'
import type { ApprovalDetail, InputCheck } from '@tacho/contract/approvals/operator-approval.ts'
import type { ReactNode } from 'react'
import { Copy } from '../web/ui/copy.tsx'
import { bytes } from '../web/text/format.ts'
import { JsonText } from '../web/text/json-text.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'

/** What the tool would get, and whether it is what was asked: the service compares it with the hash that is approved. */
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
  const { json, isTruncated, isShortened, check } = inputPreview
  return (
    <Section
      title="Input"
      note={
        <span className="flex items-center gap-2">
          {bytes(inputPreview.bytes)} <Copy text={json} />
        </span>
      }
    >
      {check.result === 'does_not_match' && <CheckNote check={check} />}
      <div className="rounded-lg border border-line bg-side px-3 py-2">
        <JsonText json={json} />
      </div>
      {check.result !== 'does_not_match' && <CheckNote check={check} />}
      {(isShortened || isTruncated) && (
        <p className="mt-1 text-sm text-soft">
          {isShortened && 'The agent shortened it to fit into an event. '}
          {isTruncated && 'Only its beginning is shown.'}
        </p>
      )}
      {children}
    </Section>
  )
}

/** The three answers: calm, doubtful, loud. */
export function CheckNote({ check }: { check: InputCheck }) {
  const text = inputCheckText(check)
  if (check.result === 'does_not_match') {
    return (
      <p role="note" className="mb-2 rounded-lg bg-red-wash px-3 py-2 text-sm font-semibold text-red">
        <span aria-hidden>✕ </span>This input {text}.
      </p>
    )
  }
  if (check.result === 'matches') {
    return (
      <p className="mt-2 text-sm text-soft">
        <span aria-hidden className="text-green">
          ✓{' '}
        </span>
        It {text}.
      </p>
    )
  }
  return (
    <p className="mt-2 text-sm text-amber">
      <span aria-hidden>? </span>Whether it is what was asked {text}.
    </p>
  )
}
