/** The user's words before a call, and the source of each value of its input. */
import { noOriginText, originText } from '@tacho/contract/approvals/sentence-text.ts'
import type { CallGrounds, InputField, UserText } from '@tacho/contract/approvals/call-sentence.ts'
import type { StateName } from '../web/text/state-styles.ts'
import { StateSign } from '../web/ui/state.tsx'
import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { LongText } from '../web/text/long-text.tsx'
import { ShownText } from '../web/text/shown-text.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { CheckNote } from './recorded-input.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')

interface Props {
  approval: ApprovalDetail
}

/** The user's own words, oldest first. */
export function UserWords({ approval: { grounds, runId } }: Props) {
  if (!grounds || grounds.said.length === 0) return null
  return (
    <Section title="What the user wrote">
      <ul className="flex flex-col gap-2">
        {grounds.said.map((userText) => (
          <li key={`${userText.step} ${userText.text}`} className="border-l-2 border-edge pl-3">
            <Words of={userText} />
            <Step eventId={userText.eventId} step={userText.step} runId={runId} />
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Words({ of: { text, isCut } }: { of: UserText }) {
  return <LongText text={isCut ? `${text}…` : text} quoted />
}

function Step({ eventId, step, runId }: { eventId: string; step: number; runId: string | null }) {
  const params = route.useParams()
  if (runId === null) return null
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId }}
      search={{ step: eventId }}
      className="link inline-block py-1 text-xs"
    >
      step {step}
    </Link>
  )
}

const CHECKS: Record<InputField['check'], { is: StateName; text: string }> = {
  matches: { is: 'AS_ASKED', text: 'as the agent asked' },
  sealed: { is: 'AS_ASKED', text: 'masked here, and as the agent asked' },
  cannot_be_checked: { is: 'NOT_CHECKABLE', text: 'cannot be checked' },
  does_not_match: { is: 'NOT_AS_ASKED', text: 'not what the agent asked for' },
}

export function InputValues({ approval }: Props) {
  const { grounds, inputPreview } = approval
  if (inputPreview === null) {
    return (
      <Section title="Input">
        <Nothing>
          {approval.grantId === null
            ? 'The agent recorded no input, as in metadata-only mode.'
            : 'The standing approval answered before an input was recorded. Look for it in the run.'}{' '}
          The decision holds for exactly one input: the one with the hash under Details.
        </Nothing>
      </Section>
    )
  }
  const { check } = inputPreview
  return (
    <Section title="Input">
      {check.result === 'does_not_match' && <CheckNote check={check} />}
      {grounds !== null && grounds.fields.length > 0 && (
        <table className="w-full text-sm">
          <thead className="sr-only">
            <tr>
              <th scope="col">Field</th>
              <th scope="col">Value, and whether the agent asked for it</th>
              <th scope="col">Where it comes from</th>
            </tr>
          </thead>
          <tbody>
            {grounds.fields.map((field) => (
              <Value key={field.path} field={field} grounds={grounds} runId={approval.runId} />
            ))}
          </tbody>
        </table>
      )}
      {grounds?.moreFields && <Nothing>More values are under Details.</Nothing>}
      {check.result !== 'does_not_match' && <CheckNote check={check} />}
    </Section>
  )
}

interface ValueProps {
  field: InputField
  grounds: CallGrounds
  runId: string | null
}

function Value({ field, grounds, runId }: ValueProps) {
  const { path, json, isCut, check, origins } = field
  const { is, text } = CHECKS[check]
  // Without a green sign for a value that no earlier step contains: it would suggest that the user asked for it.
  const isFromNowhere = origins !== null && origins.length === 0 && grounds.isWhole
  return (
    <tr className="border-b border-line align-baseline last:border-0 max-sm:grid max-sm:grid-cols-[minmax(0,7rem)_minmax(0,1fr)] max-sm:gap-x-3 max-sm:py-1.5">
      <th
        scope="row"
        className="py-1.5 pr-3 text-left font-normal text-soft [overflow-wrap:anywhere] max-sm:p-0 sm:w-1/5"
      >
        <bdi>
          <ShownText text={path === '' ? 'input' : path} />
        </bdi>
      </th>
      <td className="py-1.5 pr-3 [overflow-wrap:anywhere] max-sm:p-0 sm:w-2/5">
        {!(isFromNowhere && is === 'AS_ASKED') && <StateSign is={is} note={text} />}{' '}
        <bdi className="font-mono text-[0.8125rem] font-medium">
          <ShownText text={`${plain(json, isCut)}${isCut ? '…' : ''}`} />
        </bdi>
        <span className="sr-only">, {text}</span>
      </td>
      <td className="py-1.5 text-soft max-sm:col-span-2 max-sm:p-0">
        {origins === null || origins.length === 0 ? (
          <span className={isFromNowhere ? 'text-amber' : ''}>
            {isFromNowhere && '! '}
            {noOriginText(field, grounds)}
          </span>
        ) : (
          origins.map((origin, at) => (
            <span key={origin.kind}>
              {at > 0 && '; '}
              <Origin runId={runId} eventId={origin.eventId} text={originText(origin)} />
            </span>
          ))
        )}
      </td>
    </tr>
  )
}

function Origin({ runId, eventId, text }: { runId: string | null; eventId: string; text: string }) {
  const params = route.useParams()
  if (runId === null) return <ShownText text={text} />
  return (
    <Link
      to="/w/$workspace/$environment/runs/$runId"
      params={{ ...params, runId }}
      search={{ step: eventId }}
      className="link"
    >
      <bdi>
        <ShownText text={text} />
      </bdi>
    </Link>
  )
}

/** A text without its quotation marks. They stay if the text is empty or looks like another JSON value. */
function plain(json: string, isCut: boolean): string {
  return isCut || /^(?:[^"]|"(?:[-+.\d]|true"|false"|null"|"|[{[]))/.test(json) ? json : (JSON.parse(json) as string)
}
