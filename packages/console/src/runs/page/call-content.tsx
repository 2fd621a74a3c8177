/** The content of a tool call's events: the call, the model's text, callers that stopped waiting, and handovers. */
import { useState, type ReactNode } from 'react'
import { askedCalls, callOutcome, isFailedCall, reasonText, unusualEnd } from '@tacho/contract/runs/call-life.ts'
import { numberAt, textAt, type Json } from '@tacho/contract/record/payload-reader.ts'
import {
  callInShort,
  toldCall,
  pathEnd,
  type DiffLine,
  type ToldCommand,
  type ToldEdit,
} from '@tacho/contract/runs/call-text.ts'
import { State } from '../../web/ui/state.tsx'
import { duration, counted } from '../../web/text/format.ts'
import { LongText } from '../../web/text/long-text.tsx'
import { Decided, FailureDetails, Folded, PayloadPart } from './event-details.tsx'
import { withdrawnText } from './notes.ts'
import { DiffLines } from '../../web/text/diff.tsx'

export const NOTE_CHARS = 140

export function ToolCall({ label, payload, isFolded }: { label: string; payload: Json; isFolded: boolean }) {
  const { input, output, error } = payload
  const latency = numberAt(payload, 'latency')
  const hasError = error !== undefined && error !== null && error !== false
  const failed = isFailedCall(payload)
  const end = unusualEnd('TOOL_CALL', payload)
  const title = textAt(payload, 'toolName') ?? label
  const aside = failed ? (
    <State is="FAILED">{end}</State>
  ) : end !== null ? (
    <State is={callOutcome(payload) === 'did_not_report' ? 'DID_NOT_REPORT' : 'CANCELLED'}>{end}</State>
  ) : (
    latency !== null && <span className="tabular text-xs text-soft">{duration(latency)}</span>
  )
  const callFacts = toldCall(payload)
  if (callFacts) {
    return (
      <>
        <ToldCall told={callFacts} title={title} aside={aside} failed={failed} />
        {failed && callFacts.is === 'edit' && <FailureDetails eventType="TOOL_CALL" label={label} payload={payload} />}
      </>
    )
  }
  return (
    <Folded title={title} note={callInShort(payload, NOTE_CHARS)} aside={aside} isFolded={isFolded} mono>
      {/* The error comes before the input, which may be long: people open a failed call to see why it failed. */}
      {hasError &&
        (typeof error === 'string' ? <ErrorText text={error} /> : <PayloadPart name="Error" value={error} />)}
      {failed && <FailureDetails eventType="TOOL_CALL" label={label} payload={payload} isSaid />}
      <PayloadPart name="Input" value={input} />
      <Received text={textAt(payload, 'arguments')} />
      {(!hasError || output !== error) && <PayloadPart name="Output" value={output} />}
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

/** Calls of a model that never ran, with their arguments as received. */
export function AskedInVain({ payload }: { payload: Json }) {
  const calls = askedCalls(payload).filter((call) => call.problem !== null || call.arguments !== null)
  return calls.map((call, index) => (
    <section key={index} className="rounded-lg border border-line px-3 py-2 text-sm">
      <p className="flex flex-wrap items-center gap-2">
        asked for <code className="font-mono">{call.name}</code>
        {call.problem !== null && <State is="NEVER_RAN">{reasonText(call.problem)}</State>}
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

/** A call of a coding agent's tool, for people: the command with its output, or the edit as a difference. */

/** Lines of a difference to show: at first, and at most. The payload contains all of them. */
const LINES_SHOWN = 24
const LINES_MAX = 2_000
const LINE_CHARS = 400

interface Props {
  told: ToldCommand | ToldEdit
  /** The name of the tool; absent if it is shown elsewhere. */
  title?: string
  /** The result of the call: its duration or its failure. */
  aside?: ReactNode
  failed?: boolean
}

export function ToldCall({ told, title, aside, failed = false }: Props) {
  return (
    <section className="rounded-lg border border-line bg-raised px-3 py-2">
      <header className="flex items-center gap-2 text-sm">
        {title !== undefined && <bdi className="max-w-[40%] shrink-0 truncate font-mono font-medium">{title}</bdi>}
        <span className="min-w-0 flex-1 truncate text-soft">{told.is === 'edit' && <Changed edit={told} />}</span>
        {aside}
      </header>
      {told.is === 'edit' ? <Edit edit={told} /> : <Command told={told} failed={failed} />}
    </section>
  )
}

function Command({ told: { command, output }, failed }: { told: ToldCommand; failed: boolean }) {
  return (
    <>
      <div className="mt-1 flex gap-2 font-mono text-[0.8125rem]">
        <span aria-hidden className="text-soft select-none">
          $
        </span>
        <div className="min-w-0 font-medium [overflow-wrap:anywhere]">
          <LongText text={command} mono />
        </div>
      </div>
      {output !== null && (
        <div
          role="group"
          aria-label="Output"
          className={`mt-1.5 border-t border-line pt-1.5 [overflow-wrap:anywhere] ${failed ? 'text-red' : 'text-soft'}`}
        >
          <LongText text={output} mono />
        </div>
      )}
    </>
  )
}

function Changed({ edit: { files, added, removed } }: { edit: ToldEdit }) {
  return (
    <>
      <bdi title={files.join(', ')} className="font-mono text-xs text-ink">
        {files.map(pathEnd).join(', ')}
      </bdi>{' '}
      <span className="tabular text-xs">
        <span className="text-green">+{added}</span> <span className="text-red">−{removed}</span>
      </span>
    </>
  )
}

function Edit({ edit: { files, hunks } }: { edit: ToldEdit }) {
  const [isOpen, setOpen] = useState(false)
  const rows = hunks.flatMap((lines, index): (DiffLine | null)[] => (index === 0 ? [...lines] : [null, ...lines]))
  if (rows.length === 0) return null
  const most = isOpen ? LINES_MAX : LINES_SHOWN
  const left = rows.length - most
  return (
    <>
      <DiffLines label={`Changes of ${files.join(', ')}`} rows={rows.slice(0, most).map(shortened)} />
      {left > 0 &&
        (isOpen ? (
          <p className="mt-1 text-xs text-soft">{counted(left, 'more line')} in the payload.</p>
        ) : (
          <button type="button" onClick={() => setOpen(true)} className="link mt-1 text-xs font-medium">
            Show {counted(left, 'more line')}
          </button>
        ))}
    </>
  )
}

/** A shortened line: a line in a built file can be very long. */
function shortened(line: DiffLine | null): DiffLine | null {
  if (line === null || line.text.length <= LINE_CHARS) return line
  return { ...line, text: `${line.text.slice(0, LINE_CHARS).toWellFormed()}…` }
}
