import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../web/api.ts'
import { Button } from '../web/ui/button.tsx'
import { Field } from '../web/ui/field.tsx'
import { Refused } from '../web/ui/refused.tsx'

/** Changes the password. All other sessions of the person end. */
export function PasswordForm({ email }: { email: string }) {
  const cache = useQueryClient()
  const [password, setPassword] = useState('')
  const [newPassword, setNewPassword] = useState('')
  const change = useMutation({
    mutationFn: () => api.changePassword({ body: { password, newPassword } }),
    onSuccess: async () => {
      setPassword('')
      setNewPassword('')
      await cache.invalidateQueries({ queryKey: ['sessions'] })
    },
  })
  return (
    <form
      className="grid max-w-xl items-start gap-4 sm:grid-cols-2"
      onSubmit={(event) => {
        event.preventDefault()
        change.mutate()
      }}
    >
      {/* A password manager wants to know whose password it is. */}
      <input type="hidden" autoComplete="username" value={email} readOnly />
      <Field
        label="Present password"
        type="password"
        autoComplete="current-password"
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        required
      />
      <Field
        label="New password"
        type="password"
        autoComplete="new-password"
        minLength={LIMITS.passwordCharsMin}
        maxLength={LIMITS.passwordCharsMax}
        hint={`At least ${LIMITS.passwordCharsMin} characters`}
        value={newPassword}
        onChange={(event) => setNewPassword(event.target.value)}
        required
      />
      <div className="flex flex-wrap items-center gap-3 sm:col-span-2">
        <Button type="submit" busy={change.isPending}>
          Change password
        </Button>
        <p role="status" className="text-sm text-green empty:hidden">
          {change.isSuccess && '✓ Changed. Your other sessions have ended.'}
        </p>
        <Refused error={change.error} />
      </div>
    </form>
  )
}
