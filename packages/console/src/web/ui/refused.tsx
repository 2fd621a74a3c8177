import { explainChange } from './states.tsx'

/** Why an act failed, beside its button. */
export function Refused({ error, className = '' }: { error: unknown; className?: string }) {
  if (!error) return null
  return (
    <p role="alert" className={`text-sm text-red ${className}`}>
      {explainChange(error)}
    </p>
  )
}
