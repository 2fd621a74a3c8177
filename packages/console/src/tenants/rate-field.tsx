import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { Field } from '../web/ui/field.tsx'

interface RateFieldProps {
  hint?: string
  /** '' for the default of the service. */
  value: string
  onChange: (value: string) => void
}

/** The rate of an API key. */
export function RateField({ hint, value, onChange }: RateFieldProps) {
  return (
    <Field
      label="Requests per second"
      type="number"
      inputMode="numeric"
      min={1}
      max={LIMITS.requestsPerSecondMax}
      step={1}
      placeholder="default"
      {...(hint !== undefined && { hint })}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
