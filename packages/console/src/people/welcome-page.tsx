import { useNavigate } from '@tanstack/react-router'
import { BASE, operator } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Panel } from './panel.tsx'

/** The page for people who are signed in but have no role in any workspace. */
export function WelcomePage() {
  const navigate = useNavigate()
  async function signOut(): Promise<void> {
    await operator.signOut()
    await navigate({ to: '/sign-in' })
  }
  return (
    <Panel title="You are signed in">
      <p className="text-soft">
        You have no role in any workspace yet. Ask an owner to invite you, then reload this page.
      </p>
      <div className="flex gap-2">
        <Button look="accent" onClick={() => window.location.assign(`${BASE}/`)}>
          Look again
        </Button>
        <Button onClick={() => void signOut()}>Sign out</Button>
      </div>
    </Panel>
  )
}
