/** On every page: how many approvals wait, in the title, in the header, read out, and as a notification if allowed. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import type { ApprovalCard } from '@tacho/contract/approvals/operator-approval.ts'
import { printable } from '@tacho/contract/engine/shown-text.ts'
import { counted } from '../web/text/format.ts'
import { useTitleCount } from '../web/ui/browser.ts'
import { pendingQuery, approvalsKey } from './queries.ts'
import { needsPerson } from './caller-state.tsx'
import { operator } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'

const route = getRouteApi('/w/$workspace/$environment')

export function usePendingCount(environmentId: string): { count: number; text: string } {
  const { data } = useQuery(pendingQuery(environmentId))
  const count = data?.items.filter(needsPerson).length ?? 0
  return { count, text: data?.nextCursor ? `${count}+` : String(count) }
}

/** Keeps the count current. Shows nothing, but reads new requests out. */
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
        ? `${printable(textOf(first))} waits for approval`
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
  const title = count === 1 ? `${printable(textOf(first))} waits for approval` : `${count} tool calls wait for approval`
  const notification = new Notification(title, { body: printable(first.reason ?? first.agentId ?? ''), tag: first.id })
  notification.addEventListener('click', () => {
    window.focus()
    notification.close()
    void open()
  })
}

/**
 * Follows the stream of approvals and reads again what has changed. Over HTTP/1.1 a browser opens six connections to a
 * server, so only one of all tabs follows the stream; it passes each hint on to the others.
 */

const SILENCE_MS = 15_000
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000]

type Following = 'connecting' | 'live' | 'lost'

function useFollowApprovals(environmentId: string): Following {
  const cache = useQueryClient()
  const [following, setFollowing] = useState<Following>('connecting')
  useEffect(() => {
    const ending = new AbortController()
    const name = `tacho.approvals.${environmentId}`
    const others = new BroadcastChannel(name)
    const renew = () => void cache.invalidateQueries({ queryKey: approvalsKey(environmentId) })
    others.addEventListener('message', () => {
      setFollowing('live')
      renew()
    })
    const follow = () =>
      followStream(environmentId, ending.signal, {
        onHint() {
          others.postMessage(null)
          renew()
        },
        onState: setFollowing,
      })
    void whileAlone(name, ending.signal, follow)
    return () => {
      ending.abort()
      others.close()
    }
  }, [environmentId, cache])
  return following
}

/** Runs `act` in one tab at a time. A page without https has no locks; there, every tab runs it. */
async function whileAlone(name: string, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  if (!('locks' in navigator)) return act()
  // The request rejects if the person leaves the page before its turn.
  await navigator.locks.request(name, { signal }, act).catch(() => undefined)
}

interface Listener {
  onHint: () => void
  onState: (following: Following) => void
}

async function followStream(environmentId: string, signal: AbortSignal, { onHint, onState }: Listener): Promise<void> {
  for (let failures = 0; !signal.aborted; failures++) {
    const stream = await operator.streamApprovals({ params: { environmentId } }, { signal, timeoutMs: SILENCE_MS })
    if (stream.ok) {
      try {
        for await (const { event } of stream.value) {
          if (event === 'end') break
          failures = 0
          onState('live')
          onHint()
        }
      } catch {
        // The connection broke: open it again.
      }
    } else if (stream.status !== null && stream.status < 500 && stream.status !== 429) return
    if (signal.aborted) return
    if (failures > 0) onState('lost')
    await pause(PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)] ?? 0, signal)
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Whether the browser may notify of new approvals: the person asked for it here, and the browser allows it. */

const KEY = 'tacho.notify'

/** The call's sentence as text. It is in the script of every page, so it imports little. */
const textOf = ({ sentence }: ApprovalCard): string => sentence.map(({ text }) => text).join('')

function mayNotify(): boolean {
  return 'Notification' in window && Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on'
}

type Notifying = 'on' | 'off' | 'denied' | 'unsupported'

function useNotifying(): [Notifying, () => Promise<void>] {
  const [state, setState] = useState(read)
  async function toggle(): Promise<void> {
    if (mayNotify()) localStorage.setItem(KEY, 'off')
    else if ((await Notification.requestPermission()) === 'granted') localStorage.setItem(KEY, 'on')
    setState(read())
  }
  return [state, toggle]
}

function read(): Notifying {
  // Notifications work only over https, or on this machine.
  if (!('Notification' in window) || !window.isSecureContext) return 'unsupported'
  if (Notification.permission === 'denied') return 'denied'
  return mayNotify() ? 'on' : 'off'
}

export function NotifyButton() {
  const [state, toggle] = useNotifying()
  if (state === 'unsupported') return null
  if (state === 'denied') return <span className="text-xs text-soft">The browser blocks notifications</span>
  return (
    <Button look="quiet" aria-pressed={state === 'on'} onClick={() => void toggle()}>
      {state === 'on' ? '✓ Notifying' : 'Notify me'}
    </Button>
  )
}
