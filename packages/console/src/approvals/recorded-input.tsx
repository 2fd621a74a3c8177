import { inputCheckText } from '@tacho/contract/approvals/approval-text.ts'
import type { ApprovalDetail, InputCheck, InputPreview } from '@tacho/contract/approvals/operator-approval.ts'
import { Copy } from '../web/ui/copy.tsx'
import { bytes } from '../web/text/format.ts'
import { JsonText } from '../web/text/json-text.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Fact, Facts } from '../web/ui/section.tsx'

/** The exact tool, call id and hash, and the recorded input. Initially open if nothing above shows the input. */
export function Details({ approval }: { approval: ApprovalDetail }) {
  const { inputPreview, toolName, toolCallId, inputHash } = approval
  const texts = { Tool: toolName, Call: toolCallId, 'Input hash': inputHash }
  return (
    <details
      className="mt-6"
      open={inputPreview !== null && (approval.grounds === null || inputPreview.check.result === 'does_not_match')}
    >
      <summary className="cursor-pointer border-b border-line py-2 font-semibold">Details</summary>
      <Facts className="mt-2">
        {Object.entries(texts).map(([name, text]) => {
          return text === null ? null : (
            <Fact key={name} name={name}>
              <span
                className="flex items-center gap-1"
                title={name === 'Call' ? "The model's id of the call" : undefined}
              >
                <code className="min-w-0 truncate font-mono text-[0.8125rem]">
                  <ShownText text={text} />
                </code>
                <Copy text={text} />
              </span>
            </Fact>
          )
        })}
      </Facts>
      {inputPreview !== null && <RawInput input={inputPreview} />}
    </details>
  )
}

function RawInput({ input: { json, bytes: size, isShortened, isTruncated } }: { input: InputPreview }) {
  return (
    <>
      <p className="mt-3 mb-1 flex items-center gap-2 text-sm text-soft">
        Input, as the agent recorded it: {bytes(size)} <Copy text={json} />
      </p>
      <div className="rounded-lg border border-line bg-side px-3 py-2">
        <JsonText json={json} />
      </div>
      {(isShortened || isTruncated) && (
        <p className="mt-1 text-sm text-soft">
          {isShortened && 'The agent shortened it to fit into an event. '}
          {isTruncated && 'Only its beginning is shown.'}
        </p>
      )}
    </>
  )
}

/** Shows whether this is the input that the agent asked for. The note is more prominent if that is less certain. */
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
      <span aria-hidden>? </span>Whether it is what the agent asked for {text}.
    </p>
  )
}
