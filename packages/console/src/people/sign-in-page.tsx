/**
 * Signing in.
 *
 *   password --signed_in--> back to the page
 *           --second_factor_needed--> code <--> recovery code --signed_in--> back to the page
 */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { useEffect, useState, type ReactNode } from 'react'
import type { SignInResult } from '@tacho/contract/people/sign-in.ts'
import { api, operator } from '../web/api.ts'
import { meQuery } from '../web/queries.ts'
import { Button } from '../web/ui/button.tsx'
import { Field } from '../web/ui/field.tsx'
import { explain } from '../web/ui/states.tsx'
import { fieldsOf, Panel, Problem } from './panel.tsx'

const route = getRouteApi('/sign-in')

type Step = 'password' | 'code' | 'recovery'

export function SignInPage() {
  const { back, ended } = route.useSearch()
  const router = useRouter()
  const cache = useQueryClient()

  useEffect(() => {
    document.title = 'Sign in · Tacho'
  }, [])

  async function proceed(): Promise<void> {
    // Forget everything that was read for another person.
    cache.clear()
    // Accept only an address within the console: `back` could lead elsewhere.
    await router.navigate({ href: back?.startsWith('/w/') ? back : '/', replace: true })
  }

  return <SignInSteps ended={ended} onSignedIn={proceed} Frame={Panel} />
}

interface StepsProps {
  ended?: string | undefined
  onSignedIn: () => Promise<void> | void
  /** Renders a frame with a title around each step. */
  Frame?: (props: { title: string; children: ReactNode }) => ReactNode
}

/**
 * The steps of signing in. Without `Frame`, they are in a dialog over a page that must stay open, so the identity
 * provider opens in a separate window.
 */
export function SignInSteps({ ended, onSignedIn, Frame }: StepsProps) {
  const [step, setStep] = useState<Step>('password')

  async function proceed({ status }: SignInResult): Promise<void> {
    if (status === 'second_factor_needed') return setStep('code')
    await onSignedIn()
  }

  const form = (
    <>
      {step === 'password' && <PasswordStep ended={ended} isBesidePage={!Frame} onResult={proceed} />}
      {step === 'code' && (
        <CodeStep
          label="Code of your authenticator"
          hint="Six digits"
          send={(code) => api.signInWithCode({ body: { code } })}
          onResult={proceed}
          other={
            <Button look="quiet" onClick={() => setStep('recovery')}>
              Use a recovery code
            </Button>
          }
          inputMode="numeric"
        />
      )}
      {step === 'recovery' && (
        <CodeStep
          label="Recovery code"
          hint="Each recovery code works once."
          send={(code) => api.signInWithRecoveryCode({ body: { code } })}
          onResult={proceed}
          other={
            <Button look="quiet" onClick={() => setStep('code')}>
              Use the authenticator
            </Button>
          }
        />
      )}
    </>
  )
  return Frame ? <Frame title={step === 'password' ? 'Sign in to Tacho' : 'One more step'}>{form}</Frame> : form
}

interface StepProps {
  onResult: (result: SignInResult) => Promise<void>
}

/** The reasons for which the identity provider's page redirects here (`GET /sign-in/callback/oidc`). */
const ENDINGS = new Map([
  ['busy', 'Too many sign-ins from your network failed. Wait 15 minutes, then try again.'],
  ['unavailable', 'The identity provider cannot be reached at the moment. Try again.'],
])
const REFUSED = 'The identity provider did not sign you in. Ask an owner for an invitation.'

function PasswordStep({
  ended,
  isBesidePage,
  onResult,
}: StepProps & { ended: string | undefined; isBesidePage: boolean }) {
  const methods = useQuery({ queryKey: ['sign-in methods'], queryFn: () => api.readSignInMethods() })
  const { busy, trouble, submit } = useAttempt(onResult)
  const provider = methods.data?.oidc ?? null
  const cache = useQueryClient()
  // The person whose session ended continues with the same account.
  const known = isBesidePage ? (cache.getQueryData(meQuery.queryKey)?.email ?? undefined) : undefined

  async function goToProvider(): Promise<void> {
    // Open the window in the click: a browser blocks a window that opens after a reply.
    const beside = isBesidePage ? window.open('about:blank') : null
    const started = await operator.startOidc()
    if (!started.ok) return beside?.close()
    ;(beside ?? window).location.assign(started.value.url)
  }

  return (
    <form
      className="flex flex-col gap-4"
      onSubmit={(event) => {
        const { email, password } = fieldsOf(event)
        void submit(() => api.signIn({ body: { email: email ?? '', password: password ?? '' } }))
      }}
    >
      {provider && (
        <>
          <Button className="h-10" onClick={() => void goToProvider()}>
            Continue with {provider.name}
          </Button>
          <p className="text-center text-sm text-soft">or with a password</p>
        </>
      )}
      <Field
        label="E-mail"
        name="email"
        type="email"
        autoComplete="username"
        defaultValue={known}
        required
        autoFocus={known === undefined}
      />
      <Field
        label="Password"
        name="password"
        type="password"
        autoComplete="current-password"
        required
        autoFocus={known !== undefined}
      />
      <Problem>{trouble ?? (ended === undefined ? null : (ENDINGS.get(ended) ?? REFUSED))}</Problem>
      <Button type="submit" look="accent" busy={busy} className="h-10">
        Sign in
      </Button>
    </form>
  )
}

interface CodeProps extends StepProps {
  label: string
  hint: string
  send: (code: string) => Promise<SignInResult>
  other: ReactNode
  inputMode?: 'numeric'
}

function CodeStep({ label, hint, send, onResult, other, inputMode }: CodeProps) {
  const { busy, trouble, submit } = useAttempt(onResult)
  return (
    <form className="flex flex-col gap-4" onSubmit={(event) => void submit(() => send(fieldsOf(event)['code'] ?? ''))}>
      <Field
        key={label}
        label={label}
        hint={hint}
        name="code"
        autoComplete="one-time-code"
        inputMode={inputMode}
        required
        autoFocus
      />
      <Problem>{trouble}</Problem>
      <Button type="submit" look="accent" busy={busy} className="h-10">
        Sign in
      </Button>
      {other}
    </form>
  )
}

function useAttempt(onResult: StepProps['onResult']) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  async function submit(send: () => Promise<SignInResult>): Promise<void> {
    setBusy(true)
    setTrouble(null)
    try {
      await onResult(await send())
    } catch (error) {
      setTrouble(explain(error))
    } finally {
      setBusy(false)
    }
  }
  return { busy, trouble, submit }
}
