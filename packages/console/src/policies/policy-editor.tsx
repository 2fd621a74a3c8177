import type { Policy } from '@tacho/contract/policies/policy.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { useMutation } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import type { Place } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { useDraftState } from '../web/ui/draft-state.ts'
import { Field } from '../web/ui/field.tsx'
import { Refused } from '../web/ui/states.tsx'
import { bodyOf, draftOf, isSame } from './draft.ts'
import { DraftFields } from './draft-fields.tsx'
import { LeastAsking } from './proposed-condition.tsx'
import { Simulate } from './simulate.tsx'

interface Props {
  policy: Policy
  place: Place
  simulationId: string | undefined
  onSimulate: (simulationId: string) => void
}

/** Edits and tries the newest version. Saving makes a new version, which has no effect before it is deployed. */
export function PolicyEditor({ policy, place, simulationId, onSimulate }: Props) {
  const { workspaceId, policyId, newest } = policy
  const written = useDraftState(`policy ${workspaceId} ${policyId} ${newest.version}`, { ...draftOf(newest), note: '' })
  const { note, ...draft } = written.value
  const canWrite = place.may('admin')
  const isChanged = !isSame(draft, draftOf(newest))
  const save = useMutation({
    mutationFn: () =>
      api.createPolicyVersion({
        params: { workspaceId, policyId },
        body: { ...bodyOf(draft, note), follows: newest.version },
      }),
    onSuccess: written.forget,
  })
  return (
    <div className="mt-5 grid grid-cols-1 gap-x-10 lg:grid-cols-2">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <DraftFields
          environmentId={place.environment.id}
          draft={draft}
          onChange={(next) => written.set({ ...next, note })}
          readOnly={!canWrite}
        />
        {canWrite && newest.action === 'REQUIRE_APPROVAL' && (
          <LeastAsking
            environmentId={place.environment.id}
            policyId={policyId}
            onDraft={(condition) => written.set({ ...draft, condition, note })}
          />
        )}
        {canWrite && !isChanged && (
          <p className="mt-3 text-sm text-soft">
            Change it, and you can save it as version {Number(newest.version) + 1}.
          </p>
        )}
        {canWrite && isChanged && (
          <>
            <Field
              label="What changed, and why"
              className="mt-3"
              maxLength={LIMITS.noteChars}
              value={note}
              onChange={(event) => written.set({ ...draft, note: event.target.value })}
            />
            <div className="mt-3 flex flex-wrap items-center gap-2">
              <Button
                type="submit"
                look="accent"
                busy={save.isPending}
                disabled={!compileCondition(draft.condition).ok}
              >
                Save version {Number(newest.version) + 1}
              </Button>
              <Button look="quiet" onClick={written.forget}>
                Discard
              </Button>
              {written.wasBack && <span className="text-sm">What you wrote before is back.</span>}
              <span className="text-sm text-soft">It acts only once it is deployed.</span>
              <Refused error={save.error} className="w-full" />
            </div>
          </>
        )}
      </form>
      <div className="max-lg:mt-6 [&>section]:mt-0">
        <Simulate
          environment={place.environment}
          draft={draft}
          canSimulate={canWrite}
          simulationId={simulationId}
          onStart={onSimulate}
        />
      </div>
    </div>
  )
}
