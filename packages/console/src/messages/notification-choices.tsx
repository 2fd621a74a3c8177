import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NotificationChoice, NotificationKind } from '@tacho/contract/messages/notification.ts'
import type { Severity } from '@tacho/contract/policies/runtime-config.ts'
import { NOTIFICATION_KINDS, SEVERITIES } from '@tacho/contract/engine/words.ts'
import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { environmentsQuery, workspacesQuery } from '../web/queries.ts'
import { Refused } from '../web/ui/refused.tsx'
import { notificationsQuery } from './notifications-query.ts'

const route = getRouteApi('/w/$workspace/$environment')

const FROM: Record<Severity, string> = {
  LOW: 'of any severity',
  MEDIUM: 'MEDIUM and above',
  HIGH: 'HIGH and above',
  CRITICAL: 'CRITICAL only',
}

type Wish = Omit<NotificationChoice, 'workspaceId'>

/** The environments of this workspace, and those that the person chose in others. */
export function Choices({ choices }: { choices: NotificationChoice[] }) {
  const cache = useQueryClient()
  const { place } = route.useRouteContext()
  const { data: workspaces = [] } = useQuery(workspacesQuery)
  const shown = workspaces.filter(
    ({ id }) => id === place.workspace.id || choices.some(({ workspaceId }) => workspaceId === id),
  )
  const lists = useQueries({ queries: shown.map(({ id }) => environmentsQuery(id)) })
  // What was clicked shows at once, and what the server says after its answer.
  const [wished, setWished] = useState<Wish[] | null>(null)
  const save = useMutation({
    mutationFn: (environments: Wish[]) => api.changeNotificationSettings({ body: { environments } }),
    async onSettled() {
      await cache.invalidateQueries(notificationsQuery)
      setWished(null)
    },
  })
  const current: Wish[] =
    wished ?? choices.map(({ environmentId, kinds, severity }) => ({ environmentId, kinds, severity }))
  const isFull = current.length >= LIMITS.notifiedEnvironments

  function change(environmentId: string, kinds: NotificationKind[], severity: Severity): void {
    const others = current.filter((choice) => choice.environmentId !== environmentId)
    const own = kinds.length > 0 ? [{ environmentId, kinds, severity }] : []
    setWished([...others, ...own])
    save.mutate([...others, ...own])
  }

  return (
    <div>
      <h3 className="text-sm font-medium">Tell me about</h3>
      <Refused error={save.error} className="mt-1" />
      <ul className="mt-1 divide-y divide-line">
        {shown.flatMap((workspace, at) =>
          (lists[at]?.data ?? [])
            .filter(({ id }) => workspace.id === place.workspace.id || current.some((one) => one.environmentId === id))
            .map(({ id, name }) => {
              const choice = current.find(({ environmentId }) => environmentId === id)
              const where = shown.length > 1 ? `${workspace.name} / ${name}` : name
              return (
                <li key={id} className="flex flex-wrap items-center gap-x-5 gap-y-1.5 py-2 text-sm">
                  <bdi className="w-44 min-w-0 truncate font-medium">{where}</bdi>
                  <fieldset className="flex gap-4" disabled={save.isPending || (choice === undefined && isFull)}>
                    <legend className="sr-only">{where}</legend>
                    {NOTIFICATION_KINDS.map((kind) => {
                      const kinds = choice?.kinds ?? []
                      const isOn = kinds.includes(kind)
                      const next = isOn ? kinds.filter((one) => one !== kind) : [...kinds, kind]
                      return (
                        <label key={kind} className="flex cursor-pointer items-center gap-1.5 py-1">
                          <input
                            type="checkbox"
                            checked={isOn}
                            onChange={() => change(id, next, choice?.severity ?? 'LOW')}
                            className="accent-accent"
                          />
                          {kind}
                        </label>
                      )
                    })}
                  </fieldset>
                  {choice && (
                    <select
                      aria-label={`Severity in ${where}`}
                      value={choice.severity}
                      disabled={save.isPending}
                      onChange={(event) => change(id, choice.kinds, event.target.value as Severity)}
                      className="field h-8"
                    >
                      {SEVERITIES.map((severity) => (
                        <option key={severity} value={severity}>
                          {FROM[severity]}
                        </option>
                      ))}
                    </select>
                  )}
                </li>
              )
            }),
        )}
      </ul>
    </div>
  )
}
