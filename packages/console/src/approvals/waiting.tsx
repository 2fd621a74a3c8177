/** On every page: how many approvals wait, in the title, in the header, read out, and as a notification if allowed. */
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { counted } from '../web/text/format.ts'
import { useTitleCount } from '../web/ui/title.ts'
import { useFollowApprovals } from './follow.ts'
import { mayNotify } from './notify.ts'
import { pendingQuery } from './queries.ts'
import { needsPerson } from './caller-state.tsx'

const route = getRouteApi('/w/$workspace/$environment')

export function usePendingCount(environmentId: string): { count: number; text: string } {
  const { data } = useQuery(pendingQuery(environmentId))
  const count = data?.items.filter(needsPerson).length ?? 0
  return { count, text: data?.nextCursor ? `${count}+` : String(count) }
}

/** Keeps the count current. Shows nothing; reads out what is new. */
export function WaitingApprovals() {
  const params = route.useParams()
  const { place } = route.useRouteContext()
  const navigate = useNavigate()
  const environmentId = place.environment.id
  useFollowApprovals(environmentId)
  const { data } = useQuery(pendingQuery(environmentId))
  const [spoken, setSpoken] = useState('')
  const known = useRef<{ environmentId: string; ids: Set<string> } | null>(null)
  useTitleCount(data?.items.filter(needsPerson).length ?? 0)

  useEffect(() => {
    if (!data) return
    const before = known.current?.environmentId === environmentId ? known.current.ids : null
    known.current = { environmentId, ids: new Set(data.items.map(({ id }) => id)) }
    const fresh = before === null ? [] : data.items.filter((item) => !before.has(item.id) && needsPerson(item))
    const [first] = fresh
    if (!first) return
    setSpoken(
      fresh.length === 1
        ? `${printable(first.toolName)} waits for approval`
        : `${counted(fresh.length, 'new approval')} waiting`,
    )
    if (document.visibilityState === 'hidden' && mayNotify()) {
      notify(first, fresh.length, () =>
        navigate({
          to: '/w/$workspace/$environment/approvals/$approvalId',
          params: { ...params, approvalId: first.id },
        }),
      )
    }
  }, [data, environmentId, navigate, params])

  return (
    <p role="status" className="sr-only">
      {spoken}
    </p>
  )
}

/** With the same tag, a second tab's notification takes the place of the first one's. */
function notify(first: ApprovalCard, count: number, open: () => Promise<void>): void {
  const title =
    count === 1 ? `${printable(first.toolName)} waits for approval` : `${count} tool calls wait for approval`
  const notification = new Notification(title, { body: printable(first.reason ?? first.agentId ?? ''), tag: first.id })
  notification.addEventListener('click', () => {
    window.focus()
    notification.close()
    void open()
  })
}
