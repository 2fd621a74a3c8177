/** Shown if the session ends while a page is open. The page stays below, with everything that was typed. */
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { Dialog } from '../web/ui/overlay.tsx'
import { clock } from '../web/text/format.ts'
import { SignInSteps } from './sign-in-page.tsx'

interface Props {
  since: number
  /** Called after the sign-in. It asks the server who is signed in. */
  onSignedIn: () => void
}

export function SessionOver({ since, onSignedIn }: Props) {
  // Ignore Escape: without a session, nothing works on the page.
  const [times, setTimes] = useState(0)
  return (
    <Dialog
      key={times}
      title="Your session has ended"
      onClose={() => setTimes(times + 1)}
      isFirm
      className="w-full max-w-sm"
    >
      <div className="flex flex-col gap-4 p-5">
        <h2 className="text-lg font-semibold">Your session has ended</h2>
        <p className="text-sm text-soft">
          Noticed at {clock(since)}. Nothing was saved, sent or decided since. What you wrote is still here: sign in and
          go on.
        </p>
        <SignInSteps onSignedIn={onSignedIn} />
        <Link to="/sign-in" className="link text-sm">
          Leave this page
        </Link>
      </div>
    </Dialog>
  )
}
