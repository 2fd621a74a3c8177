import { useMutation, useQueries, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Deployment } from '@tacho/contract/policies/deployment.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { VersionDiff } from '@tacho/contract/policies/version.ts'
import { endedRuns, failedText } from '@tacho/contract/runs/statistics.ts'
import { api, refusalOf } from '../../web/api.ts'
import { Field } from '../../web/ui/field.tsx'
import { Choice } from '../../web/ui/filters.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'
import type { InForce, Item } from './queries.ts'
import { policyVersionQuery, promptResultsQuery, useSimulation } from '../queries.ts'
import { Diff } from '../../web/text/diff.tsx'
import { counted, number } from '../../web/text/format.ts'
import { StateText } from '../../web/ui/state.tsx'
import { Refused, Skeleton } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'

export type Act =
  | {
      kind: 'deploy'
      environment: InForce['environment']
      deployment: Deployment | null
      /** Initial share in the dialog. */
      share?: Deployment['share']
      /** Initial version in the dialog. Default: the newest. */
      version?: string
    }
  | { kind: 'promote' | 'roll back' | 'end share'; environment: InForce['environment']; deployment: Deployment }

interface ActDialogProps {
  workspaceId: string
  act: Act
  item: Item
  name: string
  newestVersion: string
  places: readonly InForce[]
  /** The simulation on the page, if any. */
  simulation?: Simulated | undefined
  onClose: () => void
}

export interface Simulated {
  id: string
  /** The environment whose calls were simulated. */
  environment: InForce['environment']
}

const NONE = 'none'

/** Shows what will change, and where, before the act: agents apply a change within seconds. */
export function ActDialog({
  workspaceId,
  act,
  item,
  name,
  newestVersion,
  places,
  simulation,
  onClose,
}: ActDialogProps) {
  const others = places.filter(({ environment }) => environment.id !== act.environment.id)
  const { share: shareBefore, version: offered } = act.kind === 'deploy' ? act : {}
  const [version, setVersion] = useState(shareBefore?.version ?? offered ?? newestVersion)
  const [percent, setPercent] = useState(shareBefore ? String(Math.min(99, shareBefore.percent * 2)) : '')
  // A share requires another version for the other sessions.
  const canShare =
    item.kind === 'prompt' && version !== NONE && act.deployment !== null && act.deployment.version !== version
  const share = canShare && percent !== '' && percent !== '100' ? Number(percent) : undefined
  const earlier = act.deployment?.earlierVersion ?? null
  // A rollback of the first version removes the item, because nothing was in force before it.
  const isRemoved = act.kind === 'roll back' ? earlier === null : act.kind === 'deploy' && version === NONE
  const [target, setTarget] = useState(others[0]?.environment.id ?? '')
  const [note, setNote] = useState('')
  // The version that this person saw. If two people roll back at once, the server rejects the second. A damaged version
  // cannot be compared.
  const seen = act.deployment?.damaged ? {} : { replaces: act.deployment?.version ?? null }
  const publish = useMutation({
    mutationFn: () => {
      const params = { environmentId: act.environment.id }
      const text = note.trim() || null
      if (act.kind === 'promote') {
        const body = { from: act.environment.id, items: [item], note: text }
        return api.promote({ params: { environmentId: target }, body })
      }
      if (act.kind === 'roll back' && earlier !== null)
        return api.rollBack({ params, body: { items: [{ ...item, ...seen, restores: earlier }], note: text } })
      const items = [
        act.kind === 'end share'
          ? { ...item, version: act.deployment.share?.version ?? null, share: 0 }
          : { ...item, ...seen, version: isRemoved ? null : version, ...(share !== undefined && { share }) },
      ]
      return api.deploy({ params, body: { items, note: text } })
    },
    onSuccess: onClose,
  })
  // For a version that was in force before deployments were recorded, going back is a new deployment.
  const isWayBack = offered !== undefined && version === offered && Number(version) < Number(act.deployment?.version)
  const words = isWayBack ? 'roll back' : act.kind
  const now = act.deployment === null ? 'nothing' : `version ${act.deployment.version}`
  const targetPlace = others.find(({ environment }) => environment.id === target)
  return (
    <FormDialog
      title={TITLES[words](name, act.environment.name)}
      act={isRemoved ? 'Remove' : WORDS[words]}
      className="w-full max-w-2xl"
      // After a conflict, the text of a rollback is outdated.
      isReady={act.kind !== 'roll back' || refusalOf(publish.error)?.status !== 409}
      isBusy={publish.isPending}
      error={publish.error}
      onSubmit={() => publish.mutate()}
      onClose={onClose}
    >
      {act.kind === 'deploy' && (
        <>
          <p className="mb-2 text-sm">
            In force in <b>{act.environment.name}</b> now: {act.deployment === null ? 'no version of it' : now}.
          </p>
          <Choice
            label="Version"
            value={version}
            options={[
              ...versionsUpTo(newestVersion).map((one) => [one, `Version ${one}`] as const),
              ...(act.deployment === null ? [] : [[NONE, 'Remove from this environment'] as const]),
            ]}
            onChange={setVersion}
            className="h-10 w-full text-base"
          />
          {canShare && (
            <Field
              label="Percent of sessions"
              hint={`${percent === '' || percent === '100' ? 'Empty: all sessions. Otherwise the' : 'The'} others keep version ${act.deployment?.version}.`}
              className="mt-3"
              type="number"
              inputMode="numeric"
              min={1}
              max={100}
              step={1}
              placeholder="100"
              value={percent}
              onChange={(event) => setPercent(event.target.value)}
            />
          )}
          <ChangePreview
            workspaceId={workspaceId}
            item={item}
            from={act.deployment?.version ?? null}
            to={version === NONE ? null : version}
            others={others}
          />
          {simulation && version !== NONE && (
            <SimulatedBefore workspaceId={workspaceId} policyId={item.id} version={version} simulation={simulation} />
          )}
        </>
      )}
      {act.kind === 'promote' && (
        <>
          <p className="mb-2 text-sm">
            Version {act.deployment.version} of <b>{act.environment.name}</b> goes to:
          </p>
          <Choice
            label="Environment"
            value={target}
            options={others.map(({ environment }) => [environment.id, environment.name])}
            onChange={setTarget}
            className="h-10 w-full text-base"
          />
          <p className="mt-2 text-sm text-soft">
            In force there now: {targetPlace?.deployment ? `version ${targetPlace.deployment.version}` : 'nothing'}.
          </p>
          <ChangePreview
            workspaceId={workspaceId}
            item={item}
            from={targetPlace?.deployment?.version ?? null}
            to={act.deployment.version}
            others={places.filter(({ environment }) => environment.id !== target)}
          />
        </>
      )}
      {act.kind === 'end share' && (
        <p className="text-sm">
          All sessions of <b>{act.environment.name}</b> get {now} again, also the {act.deployment.share?.percent} % that
          get version {act.deployment.share?.version} now.
        </p>
      )}
      {act.kind === 'roll back' && earlier === null && (
        <p className="text-sm">
          No other version was in force in <b>{act.environment.name}</b> before {now}. Rolling back removes it there:
          agents run without it.
        </p>
      )}
      {act.kind === 'roll back' && earlier !== null && (
        <>
          <p className="text-sm">
            <b>{act.environment.name}</b> goes back from {now} to <b>version {earlier}</b>, which was in force before
            it. Repeat to go further back.
          </p>
          <ChangePreview
            workspaceId={workspaceId}
            item={item}
            from={act.deployment.version}
            to={earlier}
            others={others}
          />
        </>
      )}
      <Field
        label="Note"
        hint="What changes, and why. It stays in the history."
        className="mt-3"
        maxLength={LIMITS.noteChars}
        value={note}
        onChange={(event) => setNote(event.target.value)}
      />
    </FormDialog>
  )
}

const WORDS = { deploy: 'Deploy', promote: 'Promote', 'roll back': 'Roll back', 'end share': 'End share' } as const
const TITLES = {
  deploy: (name: string, environment: string) => `Deploy ${name} in ${environment}`,
  promote: (name: string, environment: string) => `Promote ${name} from ${environment}`,
  'roll back': (name: string, environment: string) => `Roll back ${name} in ${environment}`,
  'end share': (name: string, environment: string) => `End the share of ${name} in ${environment}`,
} as const
const VERSIONS_SHOWN = 100

/** Version numbers from the newest down to 1. */
function versionsUpTo(newest: string): string[] {
  const last = Number(newest)
  return Array.from({ length: Math.min(last, VERSIONS_SHOWN) }, (_, index) => String(last - index))
}

interface SimulatedBeforeProps {
  workspaceId: string
  policyId: string
  version: string
  simulation: Simulated
}

/** The result of the simulation, if it simulated the version to deploy. */
function SimulatedBefore({ workspaceId, policyId, version, simulation }: SimulatedBeforeProps) {
  const { data } = useSimulation(simulation.environment.id, simulation.id)
  const { data: policy } = useQuery(policyVersionQuery(workspaceId, policyId, version))
  const result = data?.result
  if (!result || !policy) return null
  const isOfVersion = data.condition === policy.condition && data.action === policy.action
  return (
    <p className="mt-3 text-sm">
      {isOfVersion ? (
        <>
          <StateText is={result.failures > 0 ? 'WARN' : 'DONE'}>Simulated</StateText> on {counted(result.calls, 'call')}{' '}
          of <bdi>{simulation.environment.name}</bdi> since <Time at={result.from} />: it would have acted on{' '}
          {number(result.hits)}, in {counted(result.runs, 'run')}
          {result.failures > 0 && `; ${number(result.failures)} could not be evaluated`}.
        </>
      ) : (
        <StateText is="WARN">The simulation was of another condition or action than version {version}.</StateText>
      )}
    </p>
  )
}

/**
 * Previews a publication: the difference between the two versions, and results of the new one in other environments.
 */

interface ChangePreviewProps {
  workspaceId: string
  item: Item
  /** Version in force now; null: none. */
  from: string | null
  /** New version; null: the item is removed. */
  to: string | null
  /** The other environments; the item may be in force there. */
  others: readonly InForce[]
}

function ChangePreview({ workspaceId, item, from, to, others }: ChangePreviewProps) {
  const { data, error } = useQuery({
    queryKey: [item.kind, workspaceId, item.id, 'diff', from, to],
    queryFn: ({ signal }) => readDiff(workspaceId, item, { from: from ?? '', to: to ?? '' }, signal),
    enabled: from !== null && to !== null && from !== to,
    staleTime: Infinity,
  })
  return (
    <>
      {to !== null && <Elsewhere item={item} version={to} others={others} />}
      {from !== null && to !== null && from !== to && (
        <div className="mt-3">
          <h3 className="text-sm font-medium">
            Version {from} → version {to}
          </h3>
          {error ? <Refused error={error} /> : data ? <Diff diff={data} /> : <Skeleton className="mt-2 h-24" />}
        </div>
      )}
    </>
  )
}

function readDiff(
  workspaceId: string,
  { kind, id }: Item,
  query: { from: string; to: string },
  signal: AbortSignal,
): Promise<VersionDiff> {
  if (kind === 'prompt') return api.diffPromptVersions({ params: { workspaceId, promptId: id }, query }, { signal })
  return api.diffPolicyVersions({ params: { workspaceId, policyId: id }, query }, { signal })
}

/** Environments in which the version is already in force, with the time and the outcomes of its runs there. */
function Elsewhere({ item, version, others }: { item: Item; version: string; others: readonly InForce[] }) {
  const places = others.filter(({ deployment }) => deployment?.version === version)
  const results = useQueries({
    queries: places.map(({ environment }) => ({
      ...promptResultsQuery(environment.id, item.id),
      enabled: item.kind === 'prompt',
    })),
  })
  return places.map(({ environment, deployment }, index) => {
    const result = results[index]?.data?.items.find((one) => one.version === version)
    return (
      <p key={environment.id} className="mt-2 text-sm text-soft">
        In force in <b>{environment.name}</b>, deployed {deployment && <Time at={deployment.deployedAt} />}
        {result && result.runs > 0 && `: ${counted(result.runs, 'run')}`}
        {result && endedRuns(result) > 0 && `, ${failedText(result)}`}.
      </p>
    )
  })
}
