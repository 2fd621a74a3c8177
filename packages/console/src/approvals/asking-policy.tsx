import type { ApprovalDetail } from '@tacho/contract/approvals/operator-approval.ts'
import { getRouteApi, Link } from '@tanstack/react-router'
import { ActionChip, severityWord } from '../policies/action-chip.tsx'
import { Chip } from '../web/ui/chip.tsx'
import { State } from '../web/ui/state.tsx'
import { Nothing, Section } from '../web/ui/section.tsx'
import { ShownText } from '../web/text/shown-text.tsx'

const route = getRouteApi('/w/$workspace/$environment/approvals/$approvalId')

/** The policy version that required the approval, and whether there is another one in force or a newer draft. */
export function AskingPolicy({ approval: { policyId, policyVersion, askingPolicy } }: { approval: ApprovalDetail }) {
  const params = route.useParams()
  if (policyId === null) return null
  if (askingPolicy === null) {
    return (
      <Section title="The policy that asked">
        <Nothing>
          <bdi>
            <ShownText text={policyId} />
          </bdi>
          {policyVersion === null ? (
            '. Which version asked is not known: the client named none, and none was in force.'
          ) : (
            <>
              {' '}
              version <ShownText text={policyVersion} />. This workspace has no such version. The agent may have it in
              its own code.
            </>
          )}
        </Nothing>
      </Section>
    )
  }
  const { version, basis, newer, inForce, newest } = askingPolicy
  return (
    <Section title="The policy that asked">
      <p className="flex flex-wrap items-center gap-2">
        <Link
          to="/w/$workspace/$environment/policies/$policyId"
          params={{ workspace: params.workspace, environment: params.environment, policyId: version.policyId }}
          className="link font-medium"
        >
          <bdi>{version.name}</bdi>
        </Link>
        <Chip>version {version.version}</Chip>
        <ActionChip action={version.action} />
        {version.severity === 'CRITICAL' || version.severity === 'HIGH' ? (
          <State is="SEVERE">{severityWord(version.severity)}</State>
        ) : (
          <Chip>{severityWord(version.severity)}</Chip>
        )}
      </p>
      {version.description !== null && <p className="mt-1 text-soft">{version.description}</p>}
      <pre className="mt-2 rounded-lg border border-line bg-side p-3 font-mono text-[0.8125rem] whitespace-pre-wrap">
        {version.condition}
      </pre>
      {basis === 'in_force' && (
        <p className="mt-1 text-sm text-soft">The client named no version: this one was in force when it asked.</p>
      )}
      {newer !== null && (
        <p className="mt-1 text-sm text-amber">
          !{' '}
          {newer === 'in_force'
            ? `Version ${inForce ?? newest} is in force now.`
            : `Version ${newest} is drafted, and not in force.`}{' '}
          <Link
            to="/w/$workspace/$environment/policies/$policyId"
            params={{ workspace: params.workspace, environment: params.environment, policyId: version.policyId }}
            search={{ show: 'versions' }}
            className="link underline"
          >
            Compare the versions
          </Link>
        </p>
      )}
    </Section>
  )
}
