import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { State } from '../web/ui/state.tsx'
import { Copy } from '../web/ui/copy.tsx'
import { Countdown, Time } from '../web/text/times.tsx'
import { Fact, Facts, Section } from '../web/ui/section.tsx'
import { counted, duration } from '../web/text/format.ts'
import { LongText } from '../web/text/long-text.tsx'
import { LetterWarnings, ShownText } from '../web/text/shown-text.tsx'
import { PagePending, Trouble, isBlocking } from '../web/ui/states.tsx'
import { Aftermath } from './aftermath.tsx'
import { AskingPolicy } from './asking-policy.tsx'
import { ApprovalStatusChip, Requester, Sentence, ToolName } from './approval-summary.tsx'
import { BackToList } from './approvals-page.tsx'
import { Decide, Others } from './decide.tsx'
import { Earlier, EarlierOnInput } from './earlier-approvals.tsx'
import { LastResult } from './last-result.tsx'
import { InputValues, UserWords } from './call-grounds.tsx'
import { Details } from './recorded-input.tsx'
import { needsPerson, WaitingNotes } from './caller-state.tsx'
import { LastSteps } from './last-steps.tsx'
import { approvalQuery } from './queries.ts'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')

/** A request, with everything that a person needs to decide it. */
export function ApprovalPane() {
  const { approvalId } = route.useParams()
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data, error, refetch } = useQuery(approvalQuery(environmentId, approvalId))
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  if (!data) return <PagePending />
  return (
    <article aria-label={`Approval of ${data.toolName}`} className="flex h-full flex-col short:h-auto">
      <div
        className="min-h-0 flex-1 overflow-y-auto short:overflow-visible overscroll-contain px-4 pt-4 pb-8 sm:px-6"
        tabIndex={0}
      >
        <BackToList />
        <Heading approval={data} />
        <EarlierOnInput environmentId={environmentId} approval={data} />
        {data.status !== 'PENDING' && <Aftermath environmentId={environmentId} approval={data} />}
        <UserWords approval={data} />
        <InputValues approval={data} />
        {data.runId !== null && data.inputPreview !== null && (
          <LastResult environmentId={environmentId} runId={data.runId} input={data.inputPreview} />
        )}
        <Asked approval={data} />
        <AskingPolicy approval={data} />
        {data.runId !== null && <LastSteps environmentId={environmentId} runId={data.runId} />}
        <Earlier environmentId={environmentId} approval={data} />
        <Details approval={data} />
      </div>
      {place.may('approver') ? (
        <Decide key={data.id} environmentId={environmentId} approval={data} />
      ) : (
        data.status === 'PENDING' && (
          <div className="border-t border-line bg-side px-4 py-3 sm:px-6">
            <Others deciders={data.deciders} me={undefined} />
          </div>
        )
      )}
    </article>
  )
}

function Heading({ approval }: { approval: ApprovalDetail }) {
  const { askedLately } = approval
  return (
    <header>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="w-full text-lg font-medium [overflow-wrap:anywhere] sm:text-xl">
          <Sentence of={approval} />
        </h2>
        <ToolName of={approval} />
        {approval.status === 'PENDING' && !needsPerson(approval) ? (
          <State is="WITHDRAWN" />
        ) : (
          <ApprovalStatusChip status={approval.status} />
        )}
        {approval.status === 'PENDING' && <Countdown until={approval.expiresAt} />}
        <Copy text={() => window.location.href} label="Copy link" className="ml-auto" />
      </div>
      {approval.reason !== null && (
        <div className="mt-1">
          <LongText text={approval.reason} quoted />
        </div>
      )}
      <LetterWarnings
        texts={[
          approval.toolName,
          approval.reason,
          approval.agentName,
          approval.agentId,
          approval.inputPreview?.json ?? null,
        ]}
      />
      <WaitingNotes of={approval} />
      {approval.status === 'PENDING' && approval.approvers === 2 && (
        <p role="note" className="mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm text-amber">
          ! Two people must approve this, and neither may be the one who runs the agent.{' '}
          <ShownText
            text={
              approval.firstApproval === null
                ? 'Nobody has yet.'
                : `${approval.firstApproval.by.name} has: the next person decides.`
            }
          />
        </p>
      )}
      {approval.status === 'PENDING' && askedLately.burst && (
        <p role="note" className="mt-3 rounded-lg bg-amber-wash px-3 py-2 text-sm text-amber">
          ! This agent asked {counted(askedLately.requests, 'time')}
          {askedLately.capped ? ' or more' : ''} in the last {duration(askedLately.windowMs)}. Decide with care.
        </p>
      )}
    </header>
  )
}

/** Requester and time of the request, and its decision. */
function Asked({ approval }: { approval: ApprovalDetail }) {
  const params = route.useParams()
  return (
    <Section title="Who asked">
      <Facts>
        {approval.agentId !== null && (
          <Fact name="Agent">
            <Link
              to="/w/$workspace/$environment/agents/$agent"
              params={{ workspace: params.workspace, environment: params.environment, agent: approval.agentId }}
              className="link"
            >
              <Requester of={approval} />
            </Link>
          </Fact>
        )}
        {approval.runId !== null && (
          <Fact name="Run">
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId: approval.runId }}
              className="link"
            >
              <bdi>
                <ShownText text={approval.runId} />
              </bdi>
            </Link>
          </Fact>
        )}
        <Fact name="Asked">
          <Time at={approval.createdAt} /> by client{' '}
          <bdi>
            <ShownText text={approval.clientId} />
          </bdi>
        </Fact>
        {approval.importedAt !== null && (
          <Fact name="Imported">
            <Time at={approval.importedAt} />. This installation did not see the request or its decision.
          </Fact>
        )}
        {approval.firstApproval !== null && (
          <Fact name="Approved first">
            <Time at={approval.firstApproval.at} /> by{' '}
            <bdi>
              <ShownText text={approval.firstApproval.by.name} />
            </bdi>
            {approval.firstApproval.by.kind === 'token' && ' (a token)'}
            {approval.firstApproval.by.via === 'slack' && ', in Slack'}
            {approval.firstApproval.reason !== null && <LongText text={approval.firstApproval.reason} quoted />}
          </Fact>
        )}
        {approval.decidedBy !== null && approval.decidedAt !== null && (
          <Fact name="Decided">
            <Time at={approval.decidedAt} /> by{' '}
            <bdi>
              <ShownText text={approval.decidedBy.name} />
            </bdi>
            {approval.decidedBy.kind === 'token' && ' (a token)'}
            {approval.decidedBy.via === 'slack' && ', in Slack'}
            {approval.grantId !== null && ', in a standing approval'}
          </Fact>
        )}
        {approval.decisionReason !== null && (
          <Fact name="Reason">
            <LongText text={approval.decisionReason} quoted />
          </Fact>
        )}
      </Facts>
    </Section>
  )
}
