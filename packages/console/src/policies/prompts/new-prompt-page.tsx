import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api } from '../../web/api.ts'
import { Button } from '../../web/ui/button.tsx'
import { useDraftState } from '../../web/ui/draft-state.ts'
import { Field } from '../../web/ui/field.tsx'
import { Refused, Forbidden } from '../../web/ui/states.tsx'
import { useTitle } from '../../web/ui/browser.ts'
import { PromptText } from './prompt-text.tsx'

const route = getRouteApi('/w/$workspace/$environment/new-prompt')

export function NewPromptPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const written = useDraftState(`new prompt ${place.workspace.id}`, { name: '', content: '' })
  const { name, content } = written.value
  useTitle('New prompt')
  const create = useMutation({
    mutationFn: () => api.createPrompt({ params: { workspaceId: place.workspace.id }, body: { name, content } }),
    onSuccess: async ({ promptId }) => {
      written.forget()
      await navigate({
        to: '/w/$workspace/$environment/prompts/$promptId',
        params: { ...params, promptId },
        search: { show: 'deployments' },
      })
    },
  })
  if (!place.may('admin')) return <Forbidden>Only admins of this workspace write prompts.</Forbidden>
  return (
    <div className="mx-auto w-full max-w-4xl px-4 pb-12 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">New prompt</h1>
      <form
        className="mt-4"
        onSubmit={(event) => {
          event.preventDefault()
          create.mutate()
        }}
      >
        <Field
          label="Name"
          hint="Agents ask for the prompt by this name."
          className="mb-3"
          autoFocus
          required
          maxLength={LIMITS.nameChars}
          value={name}
          onChange={(event) => written.set({ content, name: event.target.value })}
        />
        <PromptText value={content} onChange={(text) => written.set({ name, content: text })} readOnly={false} />
        <div className="mt-3 flex flex-wrap items-center gap-2">
          <Button type="submit" look="accent" busy={create.isPending} disabled={name === '' || content === ''}>
            Create
          </Button>
          {written.wasBack && (
            <Button look="quiet" onClick={written.forget}>
              Discard what you wrote before
            </Button>
          )}
          <span className="text-sm text-soft">Agents get it only once it is deployed.</span>
          <Refused error={create.error} className="w-full" />
        </div>
      </form>
    </div>
  )
}
