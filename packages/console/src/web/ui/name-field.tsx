import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Field } from './field.tsx'

interface NameFieldProps {
  hint: string
  value: string
  onChange: (name: string) => void
  maxLength?: number
}

/** The first field of a dialog that makes something with a name. */
export function NameField({ hint, value, onChange, maxLength = LIMITS.nameChars }: NameFieldProps) {
  return (
    <Field
      label="Name"
      hint={hint}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      maxLength={maxLength}
      autoComplete="off"
      autoFocus
      required
    />
  )
}
