/** What the events of a tool call say: the call, what the model wrote, who gave up waiting, who took over. */
import { askedCalls, callOutcome, isFailedCall, reasonText, unusualEnd } from '@tacho/contract/runs/call-life.ts'
import { numberAt, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import { callInShort, toldCall } from '@tacho/contract/runs/call-text.ts'
import { Chip } from '../../web/ui/chip.tsx'
import { duration } from '../../web/text/format.ts'
import { LongText } from '../../web/text/long-text.tsx'
import { Decided } from './decided.tsx'
import { FailureDetails } from './failure.tsx'
import { Folded, Part } from './folded.tsx'
import { withdrawnText } from './notes.ts'
import { ToldCall } from './told-call.tsx'

export const NOTE_CHARS = 140

export function ToolCall({ label, payload, isFolded }: { label: string; payload: Json; isFolded: boolean }) {
  const { input, output, error } = payload
  const latency = numberAt(payload, 'latency')
  const hasError = error !== undefined && error !== null && error !== false
  const failed = isFailedCall(payload)
  const end = unusualEnd('TOOL_CALL', payload)
  const title = textAt(payload, 'toolName') ?? label
  const aside = failed ? (
    <Chip tone="red">✕ {end ?? 'failed'}</Chip>
  ) : end !== null ? (
    <Chip tone={callOutcome(payload) === 'did_not_report' ? 'amber' : 'plain'}>{end}</Chip>
  ) : (
    latency !== null && <span className="tabular text-xs text-soft">{duration(latency)}</span>
  )
  const told = toldCall(payload)
  if (told) {
    return (
      <>
        <ToldCall told={told} title={title} aside={aside} failed={failed} />
        {failed && told.is === 'edit' && <FailureDetails eventType="TOOL_CALL" label={label} payload={payload} />}
      </>
    )
  }
  return (
    <Folded title={title} note={callInShort(payload, NOTE_CHARS)} aside={aside} isFolded={isFolded} mono>
      <Part name="Input" value={input} />
      <Received text={textAt(payload, 'arguments')} />
      {hasError && (typeof error === 'string' ? <ErrorText text={error} /> : <Part name="Error" value={error} />)}
      {failed && <FailureDetails eventType="TOOL_CALL" label={label} payload={payload} isSaid />}
      {(!hasError || output !== error) && <Part name="Output" value={output} />}
    </Folded>
  )
}

function ErrorText({ text }: { text: string }) {
  return (
    <section className="mt-2 first:mt-0">
      <p className="mb-0.5 text-xs font-medium text-soft">Error</p>
      <div className="text-red">
        <LongText text={text} mono />
      </div>
    </section>
  )
}

/** Calls that could not be taken as they came: their arguments as received. */
export function AskedInVain({ payload }: { payload: Json }) {
  const calls = askedCalls(payload).filter((call) => call.problem !== null || call.arguments !== null)
  return calls.map((call, index) => (
    <section key={index} className="rounded-lg border border-line px-3 py-2 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        asked for <code className="font-mono">{call.name}</code>
        {call.problem !== null && (
          <Chip tone="red">
            <span aria-hidden>✕</span> {reasonText(call.problem)}
          </Chip>
        )}
      </p>
      <Received text={call.arguments} />
    </section>
  ))
}

/** The arguments of a call as the model wrote them. */
function Received({ text }: { text: string | null }) {
  if (text === null) return null
  return (
    <div className="mt-1">
      <p className="mb-0.5 text-xs font-medium text-soft">Arguments as received</p>
      <LongText text={text} mono />
    </div>
  )
}

export function Withdrawn({ label, payload }: { label: string; payload: Json }) {
  const approvalId = textAt(payload, 'approvalId')
  return (
    <>
      <p className="text-sm [overflow-wrap:anywhere]">
        <code className="font-mono">{textAt(payload, 'toolName') ?? label}</code>: {withdrawnText(payload)}. Nothing
        runs under this approval any more.
      </p>
      {approvalId !== null && <Decided approvalId={approvalId} />}
    </>
  )
}

export function HandOff({ label, payload }: { label: string; payload: Json }) {
  const [from, to] = [textAt(payload, 'from'), textAt(payload, 'to')]
  if (to === null) return <bdi className="font-medium">{label}</bdi>
  return (
    <p className="text-sm">
      {from !== null && (
        <>
          <bdi className="font-medium">{from}</bdi> hands off to{' '}
        </>
      )}
      <bdi className="font-medium text-violet">{to}</bdi>
    </p>
  )
}
