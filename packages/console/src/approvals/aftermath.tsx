import { StateText } from '../web/ui/state.tsx'
import type { ApprovalAftermath, CallVerdict, JudgedCall } from '@tacho/contract/approvals/aftermath.ts'
import type { OperatorApproval } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Section } from '../web/ui/section.tsx'
import { Skeleton } from '../web/ui/states.tsx'
import { Time } from '../web/text/times.tsx'
import { useAftermath } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment')
const OUTCOMES: Record<JudgedCall['outcome'], string> = {
  output: 'It returned an output.',
  error: 'It failed.',
  unknown: '',
}
const FINE: ReadonlySet<CallVerdict> = new Set(['as_approved'])

/** The events after the decision, as sentences. */
export function Aftermath({ environmentId, approval }: { environmentId: string; approval: OperatorApproval }) {
  const { data, error } = useAftermath(environmentId, approval.id, true)
  return (
    <Section title="What happened then" error={!data && error}>
      {data ? <Sentences aftermath={data} approval={approval} /> : <Skeleton className="h-8" />}
    </Section>
  )
}

function Sentences({
  aftermath: { calls, truncated },
  approval,
}: {
  aftermath: ApprovalAftermath
  approval: OperatorApproval
}) {
  const params = route.useParams()
  return (
    <>
      {calls.length === 0 && <p className="text-sm text-soft">{nothingRan(approval)}</p>}
      <ul>
        {calls.map((call) => (
          <li key={call.id} className="flex flex-wrap items-baseline gap-x-2 py-1 text-sm">
            <StateText is={FINE.has(call.verdict) ? 'RAN' : 'RAN_ANYWAY'}>{call.message}.</StateText>
            {OUTCOMES[call.outcome]}
            {!call.hashChecked && call.verdict === 'as_approved' && (
              <span className="text-soft">The call recorded no input hash to compare.</span>
            )}
            {approval.runId !== null && (
              <Link
                to="/w/$workspace/$environment/runs/$runId"
                params={{ ...params, runId: approval.runId }}
                search={{ step: call.eventId }}
                className="link"
              >
                Step <bdi>{call.label}</bdi>
              </Link>
            )}
            <span className="text-soft">
              <Time at={call.timestamp} />
            </span>
          </li>
        ))}
      </ul>
      {truncated && <p className="text-sm text-soft">The run is long: only its first events were examined.</p>}
    </>
  )
}

function nothingRan({ status, runId }: OperatorApproval): string {
  if (runId === null) return 'The request names no run, so what followed is not known.'
  if (status === 'APPROVED') return 'No call of the tool has been recorded since.'
  return 'The tool did not run: no call of it was recorded.'
}

/** The same in a few words, for a list. */
export function aftermathWord(
  { calls }: ApprovalAftermath,
  { status }: OperatorApproval,
): { text: string; fine: boolean } {
  const bad = calls.find(({ verdict }) => !FINE.has(verdict))
  if (bad) return { text: bad.message, fine: false }
  const [call] = calls
  if (!call) return { text: status === 'APPROVED' ? 'No call recorded' : 'Did not run', fine: true }
  return { text: call.outcome === 'error' ? 'Ran as approved, and failed' : 'Ran as approved', fine: true }
}
