import { exact } from '../web/text/format.ts'
/**
 * The page on which a person accepts an invitation. The secret is in the part after #, which browsers never send to a
 * server. So it reaches no log, and opening the link changes nothing.
 */
import { useQuery } from '@tanstack/react-query'
import { useRouter } from '@tanstack/react-router'
import { useEffect, useState, type FormEvent } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { OpenedInvitation } from '@tacho/contract/people/operator.ts'
import { api, BASE, operator, refusalOf } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Field } from '../web/ui/field.tsx'
import { explain, explainChange } from '../web/ui/states.tsx'
import { fieldsOf, Panel, Problem } from './panel.tsx'

export function InvitationPage() {
  const router = useRouter()
  const [token] = useState(() => window.location.hash.slice(1))
  const opened = useQuery({
    queryKey: ['invitation', token],
    queryFn: () => api.openInvitation({ body: { token } }),
    enabled: token !== '',
    retry: false,
    staleTime: Infinity,
  })

  useEffect(() => {
    document.title = 'Invitation · Tacho'
    // Remove the secret from the address bar and the history.
    void router.navigate({ to: '/invitation', replace: true })
  }, [router])

  const account = opened.data?.account
  return (
    <Panel title="Invitation to Tacho">
      <p role="status" className="text-soft">
        {statusOf(token, opened.data, opened.error)}
      </p>
      {account === 'identity-provider' && <p>To accept the invitation, sign in at your identity provider.</p>}
      {account === 'unknown' && (
        <p>You need an account here. If you sign in at an identity provider, signing in accepts the invitation.</p>
      )}
      {opened.data && account !== 'identity-provider' && <Acceptance token={token} invitation={opened.data} />}
      {(account === 'identity-provider' || account === 'unknown') && (
        <a className="font-medium text-accent" href={`${BASE}/`}>
          Open Tacho
        </a>
      )}
    </Panel>
  )
}

function statusOf(token: string, invitation: OpenedInvitation | undefined, error: unknown): string {
  if (token === '') return 'Part of the link is missing. Open the complete link.'
  if (refusalOf(error)?.status === 404) {
    return 'This link no longer works: it was used, revoked or has expired. Ask for a new invitation.'
  }
  if (error !== null) return explain(error)
  if (invitation === undefined) return 'Reading the invitation…'
  const { email, role, workspace, invitedBy, expiresAt } = invitation
  const expiry = `The link expires on ${exact(Date.parse(expiresAt))}.`
  if (email === '') return `Make the first account of this installation. It owns every workspace. ${expiry}`
  const where = workspace === null ? 'all workspaces of this installation' : `the workspace “${workspace}”`
  return `${invitedBy} invites ${email} to ${where}, with the role ${role}. ${expiry}`
}

interface AcceptanceProps {
  token: string
  invitation: OpenedInvitation
}

function Acceptance({ token, invitation: { email, account } }: AcceptanceProps) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const isNew = account === 'none'

  async function accept(event: FormEvent<HTMLFormElement>): Promise<void> {
    const { password = '', ...profileFields } = fieldsOf(event)
    const named = Object.entries(profileFields).filter(([, text]) => text.trim() !== '')
    setBusy(true)
    setTrouble(null)
    try {
      const accepted = await api.acceptInvitation({
        body: { token, password, ...Object.fromEntries(named.map(([name, text]) => [name, text.trim()])) },
      })
      const signedIn = await operator.signIn({ body: { email: accepted.email, password } })
      const isIn = signedIn.ok && signedIn.value.status === 'signed_in'
      // Load a new page, so that nothing remains that was read for another person or for this invitation.
      window.location.replace(`${BASE}${isIn ? '/' : '/sign-in'}`)
    } catch (error) {
      setTrouble(explainChange(error))
      setBusy(false)
    }
  }

  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void accept(event)}>
      {email === '' && (
        <Field
          label="Your e-mail address"
          name="email"
          type="email"
          autoComplete="username"
          maxLength={LIMITS.emailChars}
          required
        />
      )}
      {isNew && <Field label="Your name" name="name" autoComplete="name" maxLength={LIMITS.nameChars} />}
      <Field
        label={isNew ? `New password (at least ${LIMITS.passwordCharsMin} characters)` : 'Your existing password'}
        name="password"
        type="password"
        autoComplete={isNew ? 'new-password' : 'current-password'}
        maxLength={LIMITS.passwordCharsMax}
        required
      />
      <Problem>{trouble}</Problem>
      <Button type="submit" look="accent" busy={busy} className="h-10">
        Accept the invitation
      </Button>
    </form>
  )
}
