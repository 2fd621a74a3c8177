import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { environmentsQuery, workspacesQuery, type Place } from '../queries.ts'

const PRODUCTION = /^prod(uction)?$/i

/** Workspace and environment, always visible. Production has a colour and a label. */
export function PlaceMenu({ place: { workspace, environment } }: { place: Place }) {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const { data: workspaces = [workspace] } = useQuery(workspacesQuery)
  const { data: environments = [environment] } = useQuery(environmentsQuery(workspace.id))
  const isProduction = PRODUCTION.test(environment.name)
  const go = (names: { workspace: string; environment: string }) =>
    void navigate({ to: '/w/$workspace/$environment', params: names })

  return (
    <div className="flex min-w-0 items-center gap-1 text-sm">
      {workspaces.length > 1 ? (
        <Chooser
          label="Workspace"
          value={workspace.name}
          names={workspaces.map(({ name }) => name)}
          onChoose={(name) => void openWorkspace(name)}
        />
      ) : (
        <span className="hidden max-w-40 truncate px-1 font-medium sm:inline">{workspace.name}</span>
      )}
      <span aria-hidden className="hidden text-soft sm:inline">
        /
      </span>
      <Chooser
        label="Environment"
        value={environment.name}
        names={environments.map(({ name }) => name)}
        onChoose={(name) => go({ workspace: workspace.name, environment: name })}
        className={isProduction ? 'bg-red-wash text-red' : ''}
      />
    </div>
  )

  async function openWorkspace(name: string): Promise<void> {
    const chosen = workspaces.find((one) => one.name === name)
    const [first] = chosen ? await cache.ensureQueryData(environmentsQuery(chosen.id)) : []
    if (first) go({ workspace: name, environment: first.name })
  }
}

interface ChooserProps {
  label: string
  value: string
  names: readonly string[]
  onChoose: (name: string) => void
  className?: string
}

function Chooser({ label, value, names, onChoose, className = '' }: ChooserProps) {
  return (
    <select
      aria-label={label}
      value={value}
      onChange={(event) => onChoose(event.target.value)}
      className={`h-8 max-w-40 truncate rounded-md bg-transparent px-1.5 font-medium hover:bg-hover ${className}`}
    >
      {names.map((name) => (
        <option key={name} value={name} className="bg-raised text-ink">
          {name}
        </option>
      ))}
    </select>
  )
}
