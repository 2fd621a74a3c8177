/**
 * The number of waiting approvals on every page: in the title, in the header, for screen readers, and as a notification
 * if allowed.
 */
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

/** Keeps the count up to date. Renders nothing visible, but announces new requests to screen readers. */
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

/** Notifies of a request. A second tab uses the same tag, so its notification replaces the first one. */
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
 * Follows the stream of approvals and reads changes again. Over HTTP/1.1 a browser opens only six connections to a
 * server, so a single tab follows the stream and passes each hint on to the others.
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

/** Runs `act` in one tab at a time. On a page without https there are no locks, so every tab runs it. */
async function whileAlone(name: string, signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  if (!('locks' in navigator)) return act()
  // Rejects if the person leaves the page before the lock is free.
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

/** Whether to notify of new approvals in this browser: the person switched it on, and the browser allows it. */

const KEY = 'tacho.notify'

/** The call's sentence as text. Every page loads this script, so it imports little. */
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
