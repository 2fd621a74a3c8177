/**
 * Ready sets of policies, from examples/policies: a person chooses one, adapts it to the environment's tools by their
 * labels, tries it on examples and on the last week, and creates it. It has no effect before it is deployed.
 */
import type { Simulation } from '@tacho/contract/policies/simulation.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useMemo, useRef, useState } from 'react'
import { api } from '../web/api.ts'
import { counted, number } from '../web/text/format.ts'
import { useTitle } from '../web/ui/browser.ts'
import { Button } from '../web/ui/button.tsx'
import { useDraftState } from '../web/ui/draft-state.ts'
import { RadioCards } from '../web/ui/field.tsx'
import { Section } from '../web/ui/section.tsx'
import { Refused } from '../web/ui/states.tsx'
import { ActionChip, severityWord } from './action-chip.tsx'
import { areValid, draftsOf, LabelEditor, rulesOf, type LabelDraft } from './deployments/label-editor.tsx'
import { toolLabelsQuery } from './deployments/queries.ts'
import { policiesQuery } from './queries.ts'
import { ReadyExamples } from './ready-examples.tsx'
import { mergedLabels, policyBody, READY, type ReadySet } from './ready-set.ts'

const route = getRouteApi('/w/$workspace/$environment/policies')
const DAYS = 7
const POLL_MS = 500

export function ReadySetsPage() {
  const params = route.useParams()
  const navigate = route.useNavigate()
  const { set: name = '' } = route.useSearch()
  const chosen = READY.find((set) => set.name === name)
  useTitle('Ready sets')
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <p className="pt-4 text-sm">
        <Link to="/w/$workspace/$environment/policies" params={params} className="link">
          Policies
        </Link>
      </p>
      <h1 className="pt-1 pb-3 text-xl font-semibold">Ready sets of policies</h1>
      <RadioCards
        legend="Set"
        value={name}
        options={READY.map((set) => ({ value: set.name, name: set.name, note: set.about }))}
        onChange={(set) => void navigate({ search: { set }, replace: true })}
      />
      {chosen && <ChosenSet key={chosen.name} set={chosen} />}
    </div>
  )
}

function ChosenSet({ set }: { set: ReadySet }) {
  const { place } = route.useRouteContext()
  const environmentId = place.environment.id
  const { data: present } = useQuery(toolLabelsQuery(environmentId))
  const written = useDraftState(`ready set ${set.name} ${environmentId}`, {
    rules: draftsOf(set.labels ?? []).map((rule): LabelDraft => ({ ...rule, was: rule.tool })),
  })
  const { rules } = written.value
  const labels = useMemo(() => rulesOf(rules), [rules])
  return (
    <div className="grid grid-cols-1 gap-x-10 lg:grid-cols-2">
      {set.labels !== undefined && (
        <Section title="Labels of tools" className="mt-6 lg:col-span-2">
          <p className="text-sm text-soft">
            The policies read these labels. Put the names of your tools in, and remove rules of tools that you do not
            have.
          </p>
          <LabelEditor
            rules={rules}
            onChange={(changed) => written.set({ rules: changed })}
            tools={present?.coverage.unlabelled ?? []}
          />
        </Section>
      )}
      <Policies
        set={set}
        environmentId={environmentId}
        labels={mergedLabels(present?.labels ?? [], labels)}
        canSimulate={place.may('admin') && areValid(rules) && present !== undefined}
      />
      <ReadyExamples set={set} rules={rules} />
      {place.may('admin') ? (
        <Create
          set={set}
          labels={labels.length === 0 ? null : labels}
          isReady={areValid(rules)}
          onCreated={written.forget}
        />
      ) : (
        <p className="mt-6 text-sm text-soft">An admin of this workspace can create these policies.</p>
      )}
    </div>
  )
}

interface PoliciesProps {
  set: ReadySet
  environmentId: string
  labels: ToolLabel[]
  canSimulate: boolean
}

/** The policies of the set, and their simulation. */
function Policies({ set, environmentId, labels, canSimulate }: PoliciesProps) {
  const policies = Object.entries(set.policies)
  const [tried, setTried] = useState<{ labels: string; results: Record<string, Simulation> }>()
  const isGone = useRef(false)
  useEffect(() => {
    isGone.current = false
    return () => {
      isGone.current = true
    }
  }, [])
  const simulate = useMutation({
    // Run simulations one after the other: the server queues only a few.
    mutationFn: async () => {
      let results: Record<string, Simulation> = {}
      setTried({ labels: JSON.stringify(labels), results })
      for (const [policyId, policy] of policies) {
        const { condition, severity, action, onError } = policyBody(policyId, policy, set.name)
        const body = { condition, severity, action, onError, toolLabels: labels, days: DAYS }
        let simulation = await api.createSimulation({ params: { environmentId }, body })
        while (simulation.endedAt === null && !isGone.current) {
          await new Promise((resolve) => setTimeout(resolve, POLL_MS))
          simulation = await api.readSimulation({ params: { environmentId, simulationId: simulation.id } })
        }
        if (isGone.current) return
        results = { ...results, [policyId]: simulation }
        setTried({ labels: JSON.stringify(labels), results })
      }
    },
  })
  return (
    <Section title="What it does" note={policies.length === 1 ? '1 policy' : `${number(policies.length)} policies`}>
      <ul aria-label="Policies of the set">
        {policies.map(([id, policy]) => (
          <li key={id} className="border-b border-line py-2 text-sm last:border-0">
            <p className="flex flex-wrap items-center gap-2">
              <b className="font-medium">{policy.name ?? id}</b>
              <ActionChip action={policy.action} />
              <span className="text-soft">{severityWord(policy.severity)}</span>
            </p>
            {policy.description && <p className="whitespace-pre-line text-soft">{policy.description}</p>}
            <pre className="mt-1 rounded-md bg-hover p-2 font-mono text-xs [overflow-wrap:anywhere] whitespace-pre-wrap">
              {policy.condition.trim()}
            </pre>
            <Tried simulation={tried?.results[id]} />
          </li>
        ))}
      </ul>
      <div className="mt-2 flex flex-wrap items-center gap-2">
        <Button busy={simulate.isPending} disabled={!canSimulate} onClick={() => simulate.mutate()}>
          Simulate over the last {DAYS} days
        </Button>
        {tried !== undefined && tried.labels !== JSON.stringify(labels) && (
          <span className="text-sm text-amber">! The labels have changed since this simulation.</span>
        )}
        <Refused error={simulate.error} className="w-full" />
      </div>
    </Section>
  )
}

function Tried({ simulation }: { simulation: Simulation | undefined }) {
  if (simulation === undefined) return null
  const { result, error } = simulation
  if (result === null) return <p className="mt-1 text-red">The simulation did not end: {error ?? simulation.status}</p>
  const unknown = result.past?.unknown ?? 0
  return (
    <p role="status" className="mt-1">
      It would have acted on {number(result.hits)} of {counted(result.calls, 'call')}, in {counted(result.runs, 'run')}.
      {unknown > 0 && <span className="text-amber"> {counted(unknown, 'call')} unknown.</span>}
    </p>
  )
}

interface CreateProps {
  set: ReadySet
  /** Null if the set has no labels. */
  labels: readonly ToolLabel[] | null
  isReady: boolean
  onCreated: () => void
}

/** Creates the set. Existing policies are not changed. */
function Create({ set, labels, isReady, onCreated }: CreateProps) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const { id: environmentId, name } = place.environment
  const workspaceId = place.workspace.id
  const [hasLabels, setLabels] = useState(true)
  const listed = useQuery(policiesQuery(workspaceId, true))
  const existing = new Set(listed.data?.map(({ policyId }) => policyId))
  const missing = Object.entries(set.policies).filter(([policyId]) => !existing.has(policyId))
  const present = Object.keys(set.policies).filter((policyId) => existing.has(policyId))
  const create = useMutation({
    mutationFn: async () => {
      for (const [policyId, policy] of missing) {
        await api.createPolicy({ params: { workspaceId }, body: policyBody(policyId, policy, set.name) })
      }
      if (labels === null || !hasLabels) return
      const before = await api.readToolLabels({ params: { environmentId } })
      const body = { labels: mergedLabels(before.labels, labels) }
      await api.changeToolLabels({ params: { environmentId }, body })
    },
    onSuccess: onCreated,
  })
  return (
    <Section title="Create" className="mt-6 lg:col-span-2">
      {present.length > 0 && !create.isSuccess && (
        <p className="text-sm text-amber [overflow-wrap:anywhere]">
          ! {present.join(', ')} {present.length === 1 ? 'exists and stays as it is.' : 'exist and stay as they are.'}
        </p>
      )}
      {labels !== null && (
        <label className="flex items-baseline gap-2.5 py-1.5 text-sm">
          <input type="checkbox" checked={hasLabels} onChange={() => setLabels(!hasLabels)} className="accent-accent" />
          Add these labels to {name}. Rules of other tools stay.
        </label>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button
          look="accent"
          busy={create.isPending}
          disabled={!isReady || listed.data === undefined || (missing.length === 0 && (labels === null || !hasLabels))}
          onClick={() => create.mutate()}
        >
          {missing.length === 0
            ? 'Add labels'
            : missing.length === 1
              ? 'Create 1 policy'
              : `Create ${missing.length} policies`}
        </Button>
        <span role="status" className="text-sm text-soft">
          {create.isSuccess ? (
            <>
              ✓ Created. Nothing acts before you deploy it:{' '}
              <Link to="/w/$workspace/$environment/policies" params={params} className="link">
                Policies
              </Link>
            </>
          ) : (
            'A policy acts only once it is deployed.'
          )}
        </span>
        <Refused error={create.error} className="w-full" />
      </div>
    </Section>
  )
}
