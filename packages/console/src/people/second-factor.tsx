/**
 * The second factor of the person.
 *
 *   off --password--> shown (secret, recovery codes) --code--> on --password--> off
 */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { generate } from 'lean-qr'
import { toSvgPath } from 'lean-qr/extras/svg'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { SecondFactor } from '@tacho/contract/people/sign-in.ts'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Code } from '../web/ui/copy.tsx'
import { Dialog } from '../web/ui/overlay.tsx'
import { Field } from '../web/ui/field.tsx'
import { FormDialog } from '../web/ui/form-dialog.tsx'
import { Refused } from '../web/ui/states.tsx'

export function SecondFactorPart({ isOn }: { isOn: boolean }) {
  const [open, setOpen] = useState<'password' | SecondFactor | null>(null)
  const close = () => setOpen(null)
  return (
    <>
      <div className="flex flex-wrap items-center justify-between gap-3">
        <p className="max-w-xl text-sm text-soft">
          {isOn
            ? 'Signing in asks for a code of your authenticator, or for a recovery code.'
            : 'With a second factor, a stolen password is not enough: signing in also asks for a code of your authenticator app.'}
        </p>
        <Button onClick={() => setOpen('password')}>{isOn ? 'Turn off…' : 'Turn on…'}</Button>
      </div>
      {open === 'password' && (
        <PasswordDialog
          title={isOn ? 'Turn the second factor off' : 'Turn a second factor on'}
          act={isOn ? 'Turn off' : 'Continue'}
          run={async (password) => {
            if (!isOn) return setOpen(await api.addSecondFactor({ body: { password } }))
            await api.removeSecondFactor({ body: { password } })
            close()
          }}
          onClose={close}
        />
      )}
      {open !== null && open !== 'password' && <Enrol factor={open} onClose={close} />}
    </>
  )
}

interface PasswordProps {
  title: string
  act: string
  run: (password: string) => Promise<void>
  onClose: () => void
}

function PasswordDialog({ title, act, run, onClose }: PasswordProps) {
  const [password, setPassword] = useState('')
  const send = useMutation({ mutationFn: () => run(password) })
  return (
    <FormDialog
      title={title}
      act={act}
      isReady={password !== ''}
      isBusy={send.isPending}
      error={send.error}
      onSubmit={() => send.mutate()}
      onClose={onClose}
    >
      <Field
        label="Your password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        autoFocus
        required
      />
    </FormDialog>
  )
}

interface EnrolProps {
  factor: SecondFactor
  onClose: () => void
}

function Enrol({ factor: { uri, recoveryCodes }, onClose }: EnrolProps) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    mutationFn: () => api.confirmSecondFactor({ body: { code } }),
    onSuccess: onClose,
  })
  const secret = new URL(uri).searchParams.get('secret') ?? uri
  return (
    <Dialog title="Your authenticator" onClose={onClose} isFirm>
      <form
        className="flex max-h-[85dvh] flex-col gap-4 overflow-y-auto p-5"
        onSubmit={(event) => {
          event.preventDefault()
          confirm.mutate()
        }}
      >
        <h2 className="text-lg font-semibold">Your authenticator</h2>
        <div className="flex flex-wrap items-center gap-4">
          <QrCode text={uri} label="Address of the second factor, for the camera of your authenticator" />
          <p className="min-w-0 flex-1 basis-48 text-sm text-soft">
            Scan this with your authenticator app. Or type the secret in:
          </p>
        </div>
        <Code label="Secret" text={secret} />
        <div>
          <p className="mb-1 text-sm">
            <span className="font-medium">Recovery codes.</span>{' '}
            <span className="text-soft">
              Each signs in once, when the authenticator is lost. They are shown only now.
            </span>
          </p>
          <Code label="Recovery codes" text={recoveryCodes.join('\n')} />
        </div>
        <Field
          label="Code that the authenticator shows now"
          inputMode="numeric"
          autoComplete="one-time-code"
          maxLength={LIMITS.codeChars}
          value={code}
          onChange={(event) => setCode(event.target.value)}
          required
        />
        <Refused error={confirm.error} />
        <div className="flex justify-end gap-2">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" look="accent" busy={confirm.isPending} disabled={code.trim() === ''}>
            Turn on
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

/** Dark on light in both themes, because many cameras cannot read the opposite. */
function QrCode({ text, label }: { text: string; label: string }) {
  const bitmap = generate(text)
  const side = bitmap.size + 8
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`-4 -4 ${side} ${side}`}
      shapeRendering="crispEdges"
      className="size-44 rounded-lg"
    >
      <rect x={-4} y={-4} width={side} height={side} fill="#fff" />
      <path d={toSvgPath(bitmap)} fill="#000" />
    </svg>
  )
}
