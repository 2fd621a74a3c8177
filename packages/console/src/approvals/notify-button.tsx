import { Button } from '../web/ui/button.tsx'
import { useNotifying } from './notify.ts'

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
