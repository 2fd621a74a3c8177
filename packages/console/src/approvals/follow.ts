/**
 * Follows the stream of approvals and reads again what it says has changed. Over HTTP/1.1 a browser opens six
 * connections to a server, so of all tabs only one follows; it passes each hint on to the others.
 */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { operator } from '../web/api.ts'
import { approvalsKey } from './queries.ts'

const SILENCE_MS = 15_000
const PAUSES_MS = [500, 1_000, 2_000, 5_000, 10_000, 30_000]

type Following = 'connecting' | 'live' | 'lost'

export function useFollowApprovals(environmentId: string): Following {
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
  // Rejected when the page is left before its turn.
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
