/** Whether the browser may tell of new approvals: the person asked for it here, and the browser allows it. */
import { useState } from 'react'

const KEY = 'tacho.notify'

export function mayNotify(): boolean {
  return 'Notification' in window && Notification.permission === 'granted' && localStorage.getItem(KEY) === 'on'
}

export type Notifying = 'on' | 'off' | 'denied' | 'unsupported'

export function useNotifying(): [Notifying, () => Promise<void>] {
  const [state, setState] = useState(read)
  async function toggle(): Promise<void> {
    if (mayNotify()) localStorage.setItem(KEY, 'off')
    else if ((await Notification.requestPermission()) === 'granted') localStorage.setItem(KEY, 'on')
    setState(read())
  }
  return [state, toggle]
}

function read(): Notifying {
  // Only a page with https, or of this machine, may notify.
  if (!('Notification' in window) || !window.isSecureContext) return 'unsupported'
  if (Notification.permission === 'denied') return 'denied'
  return mayNotify() ? 'on' : 'off'
}
