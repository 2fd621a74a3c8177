import { useQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { api, BASE } from '../web/api.ts'
import { Code } from '../web/ui/copy.tsx'
import { Time } from '../web/text/times.tsx'
import { useTitle } from '../web/ui/browser.ts'
import { CONNECTIONS } from './connections.ts'
import { Button } from '../web/ui/button.tsx'
import { explain } from '../web/ui/states.tsx'

const route = getRouteApi('/w/$workspace/$environment')
const REFRESH_MS = 2_000

/** Guides a new user until the first event is on a timeline. */
export function GetStartedPage() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const [key, setKey] = useState<string | null>(null)
  const environmentId = place.environment.id
  const { data } = useQuery({
    queryKey: ['first run', environmentId],
    queryFn: () => api.listOperatorRuns({ params: { environmentId }, query: { limit: 1 } }),
    refetchInterval: REFRESH_MS,
  })
  const newest = data?.items[0]
  useTitle('Get started')

  return (
    <div className="mx-auto w-full max-w-3xl px-4 pb-16 sm:px-5">
      <h1 className="pt-5 text-xl font-semibold">Get started</h1>
      <p className="mt-1 text-soft">Three steps, and the first run is on its page.</p>
      <h2 className="mt-8 font-semibold">1. A key for {place.environment.name}</h2>
      <NewKey environmentId={environmentId} canCreate={place.may('admin')} value={key} onCreated={setKey} />
      <h2 className="mt-8 mb-2 font-semibold">2. Record an event</h2>
      <Code label="A curl line that records an event" text={curlLine(key ?? '<API key>')} />
      <p className="mt-2 text-sm text-soft">
        From anything that speaks HTTP, post up to 100 events at a time. Most agents need one line instead:
      </p>
      <Connections />
      <h2 className="mt-8 mb-2 font-semibold">3. Look at it</h2>
      <div
        role="status"
        className={`rounded-lg border px-4 py-3 ${newest ? 'border-green bg-green-wash' : 'border-line bg-side'}`}
      >
        {newest ? (
          <>
            <span className="font-medium text-green">✓ Recorded.</span> The newest run is{' '}
            <Link
              to="/w/$workspace/$environment/runs/$runId"
              params={{ ...params, runId: newest.runId }}
              className="link"
            >
              <bdi>{newest.runId}</bdi>
            </Link>
            , started <Time at={newest.startedAt} />.
          </>
        ) : (
          'Waiting for the first event…'
        )}
      </div>
    </div>
  )
}

function Connections() {
  return (
    <div className="mt-3 overflow-x-auto rounded-lg border border-line" tabIndex={0} role="region" aria-label="Connect">
      <table className="w-full text-left text-sm">
        <thead className="text-soft">
          <tr>
            {['Agent', 'One line', 'Guards tools', 'Page'].map((title) => (
              <th key={title} scope="col" className="px-3 py-2 font-medium whitespace-nowrap">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {CONNECTIONS.map(({ name, line, guardsTools, page }) => (
            <tr key={name} className="border-t border-line">
              <th scope="row" className="px-3 py-1.5 font-normal sm:min-w-32">
                {name}
              </th>
              <td className="min-w-64 px-3 py-1.5 font-mono text-xs [overflow-wrap:anywhere]">{line}</td>
              <td className="px-3 py-1.5">{guardsTools ? 'yes' : 'no'}</td>
              <td className="px-3 py-1.5 font-mono text-xs whitespace-nowrap">{page}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The curl command on one line, for a POSIX shell: the shell inserts the time. */
function curlLine(key: string): string {
  const event = [
    `{"eventId":"hello-'$(date +%s)'","clientId":"curl","runId":"hello",`,
    `"agentName":"curl","eventType":"USER_INPUT","label":"Hello",`,
    `"timestamp":'$(date +%s)000',"payload":{"text":"Hello"}}`,
  ]
  return [
    `curl -sS ${window.location.origin}${BASE}/openapi/v1/events/batch \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -H 'X-API-Key: ${key}' \\`,
    `  -d '[${event.join('\n      ')}]'`,
  ].join('\n')
}

interface Props {
  environmentId: string
  canCreate: boolean
  value: string | null
  onCreated: (key: string) => void
}

/** Creates an agent's key, which can only record events and read what the agent needs to run. */
function NewKey({ environmentId, canCreate, value, onCreated }: Props) {
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
