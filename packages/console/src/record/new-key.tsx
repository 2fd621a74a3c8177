import { useMutation } from '@tanstack/react-query'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Code } from '../web/ui/code.tsx'
import { explain } from '../web/ui/states.tsx'

interface Props {
  environmentId: string
  canCreate: boolean
  value: string | null
  onCreated: (key: string) => void
}

/** Makes the key of an agent: it records events and reads what it needs to run, and nothing else. */
export function NewKey({ environmentId, canCreate, value, onCreated }: Props) {
  const create = useMutation({
    mutationFn: () =>
      api.createApiKey({
        params: { environmentId },
        body: {
          name: `console ${new Date().toISOString().slice(0, 16)}`,
          scopes: ['events:write', 'config:read', 'policies:read'],
        },
      }),
    onSuccess: ({ key }) => onCreated(key),
  })
  if (value !== null) {
    return (
      <>
        <p className="mt-1 mb-2 text-sm text-soft">Keep this key now: it is not shown again.</p>
        <Code label="API key" text={value} />
      </>
    )
  }
  if (!canCreate) return <p className="mt-1 text-sm text-soft">Ask an admin of this workspace for an API key.</p>
  return (
    <>
      <p className="mt-1 mb-2 text-sm text-soft">
        The key names the environment and lets an agent record events and load its configuration.
      </p>
      <Button look="accent" busy={create.isPending} onClick={() => create.mutate()}>
        Create a key
      </Button>
      {create.error && (
        <p role="alert" className="mt-2 text-sm text-red">
          {explain(create.error)}
        </p>
      )}
    </>
  )
}
