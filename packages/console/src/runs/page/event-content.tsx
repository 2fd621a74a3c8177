/** The content of an event, by the conventions for its type. */
import { ActionChip } from '../../policies/action-chip.tsx'
import type { OperatorEvent } from '@tacho/contract/runs/operator-run.ts'
import type { RunStatus } from '@tacho/contract/runs/run.ts'
import { Chip } from '../../web/ui/chip.tsx'
import { compact, counted, duration, money, plainText } from '../../web/text/format.ts'
import { LongText, SentImages } from '../../web/text/long-text.tsx'
import { MessageText } from '../../web/text/message-text.tsx'
import {
  contentImages,
  contentText,
  inShort,
  isObject,
  messagesAt,
  numberAt,
  textAt,
  type Json,
  type Message,
} from '@tacho/contract/record/payload-reader.ts'
import { scoreText } from '@tacho/contract/runs/run-text.ts'
import { callInShort, decisionReason, toldCall } from '@tacho/contract/runs/call-text.ts'
import { FailureDetails, Decided, Folded, PayloadPart } from './event-details.tsx'
import { STATUSES } from '../address.ts'
import { Status } from '../run-status.tsx'
import { AskedInVain, HandOff, NOTE_CHARS, ToolCall, Withdrawn, ToldCall } from './call-content.tsx'

interface Props {
  event: OperatorEvent
  /** Whether tool calls are initially one line, as in a transcript. */
  isFolded?: boolean
  /** Number of first messages that the previous model call also sent. */
  sentBefore?: number
}

export function EventContent({ event, isFolded = false, sentBefore = 0 }: Props) {
  const payload: Json = isObject(event.payload) ? event.payload : {}
  const [subagent, agent] = [textAt(payload, 'subagent'), textAt(payload, 'agent')]
  const by = subagent ?? agent
  const content = <Said event={event} payload={payload} isFolded={isFolded} sentBefore={sentBefore} />
  if (by === null) return content
  return (
    <div className="border-l-2 border-violet pl-3">
      <p className="mb-1 truncate text-xs text-soft">
        {subagent === null ? 'agent' : 'sub-agent'} <bdi className="font-medium text-violet">{by}</bdi>
      </p>
      {content}
    </div>
  )
}

/** A judgement of the run, if the payload follows the convention. The payload view shows everything. */
function Judgement({ payload }: { payload: Json }) {
  const { value } = payload
  const isValue = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'
  const scoreNote = isValue ? scoreText(value) : 'no value'
  const [comment, author] = [textAt(payload, 'comment'), textAt(payload, 'author')]
  return (
    <div className="text-sm">
      <bdi className="font-medium">{textAt(payload, 'name') ?? 'score'}</bdi> <bdi>{scoreNote}</bdi>
      {author !== null && (
        <span className="text-soft">
          {' '}
          by <bdi>{author}</bdi>
        </span>
      )}
      {comment !== null && <LongText text={comment} />}
    </div>
  )
}

interface SaidProps {
  event: OperatorEvent
  payload: Json
  isFolded: boolean
  sentBefore: number
}

function Said({ event, payload, isFolded, sentBefore }: SaidProps) {
  const of = { eventType: event.eventType, label: event.label, payload }
  const failure = <FailureDetails {...of} />
  switch (event.eventType) {
    case 'USER_INPUT':
      return (
        <>
          <Bubble tone="bg-cyan-wash" isMessage>
            {(textAt(payload, 'text') ?? contentText(payload['content'])) || event.label}
          </Bubble>
          <SentImages addresses={contentImages(payload['content'])} />
        </>
      )
    case 'AGENT_STEP':
      return (
        <>
          <AgentStep
            label={event.label}
            text={textAt(payload, 'text') ?? contentText(payload['content'])}
            isFolded={isFolded}
          />
          {failure}
          <AskedCall payload={payload} />
        </>
      )
    case 'LLM_CALL':
      return (
        <>
          {failure}
          <ModelCall event={event} payload={payload} isFolded={isFolded} sentBefore={sentBefore} />
        </>
      )
    case 'TOOL_START':
    case 'TOOL_CALL':
      return <ToolCall label={event.label} payload={payload} isFolded={isFolded} />
    case 'POLICY_DECISION':
      return <PolicyDecision label={event.label} payload={payload} />
    case 'APPROVAL_WITHDRAWN':
      return <Withdrawn label={event.label} payload={payload} />
    case 'HANDOFF':
      return <HandOff label={event.label} payload={payload} />
    case 'ERROR':
      return (
        <>
          <Bubble tone="bg-red-wash">{textAt(payload, 'message') ?? event.label}</Bubble>
          <FailureDetails {...of} isSaid />
        </>
      )
    case 'SCORE':
      return <Judgement payload={payload} />
    case 'SESSION_OUTCOME':
      return (
        <>
          <Outcome label={event.label} payload={payload} />
          {failure}
        </>
      )
    default:
      return <Label>{event.label}</Label>
  }
}

function Label({ children }: { children: string }) {
  return <bdi className="font-medium">{children}</bdi>
}

function Bubble({ tone, isMessage = false, children }: { tone: string; isMessage?: boolean; children: string }) {
  return (
    <div className={`rounded-lg px-3.5 py-2.5 ${tone}`}>
      {isMessage ? <MessageText text={children} /> : <LongText text={children} />}
    </div>
  )
}

function AgentStep({ label, text, isFolded }: { label: string; text: string; isFolded: boolean }) {
  return text === '' ? (
    <Label>{label}</Label>
  ) : (
    <Folded title={label} note={plainText(inShort(text))} isFolded={isFolded}>
      <MessageText text={text} />
    </Folded>
  )
}

function ModelCall({ event, payload, isFolded, sentBefore }: SaidProps) {
  const answers = messagesAt(payload, 'output')
  const sent = messagesAt(payload, 'messages')
  return (
    <div className="flex flex-col gap-2">
      <Sent messages={sent} sentBefore={sentBefore} isFolded={isFolded} />
      {answers.length === 0 && <Label>{event.label}</Label>}
      {answers.map((message, index) => (
        <ChatMessage key={index} message={message} isAnswer />
      ))}
      <AskedInVain payload={payload} />
      <ModelFacts event={event} payload={payload} />
    </div>
  )
}

interface SentProps {
  messages: readonly Message[]
  sentBefore: number
  isFolded: boolean
}

function Sent({ messages, sentBefore, isFolded }: SentProps) {
  const fresh = messages.length - sentBefore
  const earlier = fresh > 0 ? sentBefore : 0
  if (messages.length === 0) return null
  return (
    <Folded
      title="Sent to the model"
      note={`${counted(messages.length, 'message')}${fresh > 0 && fresh < messages.length ? `, ${fresh} new` : ''}`}
      isFolded={isFolded}
    >
      <div className="flex flex-col gap-2">
        {earlier > 0 && (
          <Folded title="Sent before" note={`${counted(earlier, 'message')}, as in the model call before`} isFolded>
            <Messages messages={messages.slice(0, earlier)} />
          </Folded>
        )}
        {earlier > 0 && <p className="text-xs font-medium text-accent">New since the model call before</p>}
        <Messages messages={messages.slice(earlier)} />
      </div>
    </Folded>
  )
}

/** The input of a call. Renders nothing for other steps. */
export function StepInput({ event: { eventType, payload } }: { event: OperatorEvent }) {
  if (!isObject(payload)) return null
  if (eventType === 'LLM_CALL') return <Sent messages={messagesAt(payload, 'messages')} sentBefore={0} isFolded />
  const callFacts = toldCall(payload)
  return callFacts ? <ToldCall told={callFacts} /> : <PayloadPart name="Input" value={payload['input']} />
}

function Messages({ messages }: { messages: readonly Message[] }) {
  return (
    <div className="flex flex-col gap-2">
      {messages.map((message, index) => (
        <ChatMessage key={index} message={message} />
      ))}
    </div>
  )
}

function ChatMessage({
  message: { role, text, images, toolCalls },
  isAnswer = false,
}: {
  message: Message
  isAnswer?: boolean
}) {
  return (
    <div className={isAnswer ? '' : 'rounded-lg border border-line px-3 py-2'}>
      {!isAnswer && <p className="text-xs font-medium text-soft">{role}</p>}
      {text !== '' && <MessageText text={text} />}
      <SentImages addresses={images} />
      {toolCalls.map(({ name, input }, index) => (
        <p key={index} className="mt-1 truncate text-sm text-soft">
          asks for <code className="font-mono text-ink">{name}</code> <bdi className="font-mono">{inShort(input)}</bdi>
        </p>
      ))}
    </div>
  )
}

function ModelFacts({ event, payload }: { event: OperatorEvent; payload: Json }) {
  const usage = isObject(payload['usage']) ? payload['usage'] : {}
  const [sent, answered] = [
    numberAt(usage, 'promptTokens') ?? numberAt(usage, 'prompt_tokens') ?? numberAt(usage, 'input_tokens'),
    numberAt(usage, 'completionTokens') ?? numberAt(usage, 'completion_tokens') ?? numberAt(usage, 'output_tokens'),
  ]
  const latency = numberAt(payload, 'latency')
  const asked = textAt(payload, 'requestModel')
  const facts = [
    textAt(payload, 'model'),
    asked === null || asked === textAt(payload, 'model') ? null : `asked for ${asked}`,
    latency === null ? null : duration(latency),
    sent === null && answered === null
      ? 'tokens unknown'
      : `${sent === null ? 'unknown' : compact(sent)} → ${answered === null ? 'unknown' : compact(answered)} tokens`,
    callCost(event, numberAt(payload, 'cost'), sent !== null || answered !== null),
  ].filter((fact) => fact !== null)
  return facts.length === 0 ? null : <p className="tabular text-xs text-soft">{facts.join(' · ')}</p>
}

function callCost(
  { estimatedCost, priceTable, unpricedCalls }: OperatorEvent,
  recorded: number | null,
  hasTokens: boolean,
): string {
  if (recorded !== null) return `cost ${money(recorded)}`
  if (estimatedCost === null) return hasTokens ? 'cost unknown: this model has no price' : 'cost unknown'
  const mark = unpricedCalls > 0 ? 'at least' : '≈'
  return `cost ${mark} ${money(estimatedCost)}, estimated with ${priceTable}`
}

/** The call to which a decision or a request belongs. */
function AskedCall({ payload }: { payload: Json }) {
  const { input } = payload
  if (input === undefined) return null
  const callFacts = toldCall({ input })
  if (callFacts)
    return (
      <div className="mt-1.5">
        <ToldCall told={callFacts} />
      </div>
    )
  return <p className="mt-1 truncate font-mono text-xs text-soft">{callInShort({ input }, NOTE_CHARS)}</p>
}

const ACTIONS = ['ALLOW', 'WARN', 'REQUIRE_APPROVAL', 'BLOCK'] as const

function PolicyDecision({ label, payload }: { label: string; payload: Json }) {
  const action = textAt(payload, 'action')
  const known = ACTIONS.find((one) => one === action)
  const reason = decisionReason(payload)
  const approvalId = textAt(payload, 'approvalId')
  const policies = Array.isArray(payload['policyIds'])
    ? payload['policyIds'].filter((id) => typeof id === 'string')
    : []
  return (
    <>
      <p className="flex flex-wrap items-center gap-2 text-sm">
        {known !== undefined ? <ActionChip action={known} /> : action !== null && <Chip>{action}</Chip>}
        <code className="font-mono">{textAt(payload, 'toolName') ?? label}</code>
        {policies.length > 0 && <span className="text-soft">by {policies.join(', ')}</span>}
        {reason !== '' && <span className="w-full [overflow-wrap:anywhere]">{reason}</span>}
      </p>
      <AskedCall payload={payload} />
      {approvalId !== null && <Decided approvalId={approvalId} />}
    </>
  )
}

function Outcome({ label, payload }: { label: string; payload: Json }) {
  const status: RunStatus | undefined = STATUSES.find((one) => one === payload['status'])
  return (
    <p className="flex items-center gap-2">
      {status && <Status status={status} />}
      <Label>{label}</Label>
    </p>
  )
}
