import { useState } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { POLICY_ID_PATTERN } from '@tacho/contract/engine/words.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api } from '../web/api.ts'
import { eventQuery } from '../runs/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { useDraftState } from '../web/ui/draft-state.ts'
import { Field } from '../web/ui/field.tsx'
import { Refused, Forbidden, isBlocking, PagePending, Trouble } from '../web/ui/states.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { bodyOf, EMPTY_DRAFT, callOf, type Call, type Draft } from './draft.ts'
import { DraftFields } from './draft-fields.tsx'
import { Simulate } from './simulate.tsx'

const route = getRouteApi('/w/$workspace/$environment/new-policy')

export function NewPolicyPage() {
  const { place } = route.useRouteContext()
  const { run, step } = route.useSearch()
  const isOfCall = run !== undefined && step !== undefined
  const { data, error, refetch } = useQuery({
    ...eventQuery(place.environment.id, run ?? '', step ?? ''),
    enabled: isOfCall,
  })
  if (!place.may('admin')) return <Forbidden>Only admins of this workspace write policies.</Forbidden>
  if (!isOfCall) return <NewPolicy call={null} />
  if (isBlocking(error, data)) return <Trouble error={error} retry={() => void refetch()} />
  return data ? <NewPolicy call={callOf(data.event.payload)} /> : <PagePending />
}

function NewPolicy({ call }: { call: Call | null }) {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const written = useDraftState(`new policy ${place.workspace.id} ${call?.condition ?? ''}`, {
    ...EMPTY_DRAFT,
    condition: call?.condition ?? '',
    policyId: '',
  })
  const { policyId, ...draft } = written.value
  const setDraft = (next: Draft) => written.set({ ...next, policyId })
  useTitle('New policy')
  const [simulationId, setSimulationId] = useState<string>()
  const create = useMutation({
    mutationFn: () =>
      api.createPolicy({ params: { workspaceId: place.workspace.id }, body: { policyId, ...bodyOf(draft, '') } }),
    onSuccess: async () => {
      written.forget()
      await navigate({
        to: '/w/$workspace/$environment/policies/$policyId',
        params: { ...params, policyId },
        search: simulationId === undefined ? {} : { simulation: simulationId },
      })
    },
  })
  const isValid = new RegExp(POLICY_ID_PATTERN).test(policyId)
  const missing = !isValid
    ? 'Give it a valid id first.'
    : compileCondition(draft.condition).ok
      ? null
      : 'Write a valid condition first.'
  return (
    <div className="mx-auto w-full max-w-6xl px-4 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">New policy</h1>
      <div className="mt-4 grid grid-cols-1 gap-x-10 lg:grid-cols-2">
        <form
          onSubmit={(event) => {
            event.preventDefault()
            create.mutate()
          }}
        >
          <Field
            label="Id"
            hint="Permanent: lower-case letters, digits, dots, dashes and underscores."
            fault={
              policyId === '' || isValid
                ? null
                : 'Use only lower-case letters, digits, dots, dashes and underscores, and begin with a letter or a digit.'
            }
            className="mb-3"
            autoFocus
            required
            maxLength={LIMITS.policyIdChars}
            value={policyId}
            onChange={(event) => written.set({ ...draft, policyId: event.target.value })}
          />
          {call !== null && (
            <CallFields
              fields={call.fields}
              onAdd={(field) => setDraft({ ...draft, condition: `${draft.condition.trimEnd()} && ${field}` })}
            />
          )}
          <DraftFields environmentId={place.environment.id} draft={draft} onChange={setDraft} readOnly={false} />
          <div className="mt-3 flex flex-wrap items-center gap-2">
            <Button type="submit" look="accent" busy={create.isPending} disabled={missing !== null}>
              Create
            </Button>
            {written.wasBack && (
              <Button look="quiet" onClick={written.forget}>
                Discard what you wrote before
              </Button>
            )}
            <span className="text-sm text-soft">{missing ?? 'It acts only once it is deployed.'}</span>
            <Refused error={create.error} className="w-full" />
          </div>
        </form>
        <div className="max-lg:mt-6">
          <Simulate
            environment={place.environment}
            draft={draft}
            canSimulate
            simulationId={simulationId}
            onStart={setSimulationId}
          />
        </div>
      </div>
    </div>
  )
}

interface CallFieldsProps {
  fields: readonly string[]
  onAdd: (field: string) => void
}

/** Buttons that narrow the condition to calls like the recorded one. */
function CallFields({ fields, onAdd }: CallFieldsProps) {
  return (
    <div role="group" aria-label="From the call" className="mb-3 text-sm">
      <p className="text-soft">
        The condition holds for every call of the tool.{fields.length > 0 && ' Narrow it to calls like this one:'}
      </p>
      <div className="mt-1.5 flex flex-wrap gap-1.5">
        {fields.map((field) => (
          <Button key={field} className="max-w-full" onClick={() => onAdd(field)}>
            <bdi className="truncate font-mono text-xs">&& {field}</bdi>
          </Button>
        ))}
      </div>
    </div>
  )
}
