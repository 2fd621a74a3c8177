import { useId, type InputHTMLAttributes } from 'react'

interface Props extends InputHTMLAttributes<HTMLInputElement> {
  label: string
  hint?: string
  /** What is wrong with the value; shown instead of the hint. */
  fault?: string | null
}

/** A labelled input. */
export function Field({ label, hint, fault = null, className = '', ...rest }: Props) {
  const id = useId()
  const note = fault ?? hint
  return (
    <div className={className}>
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
      </label>
      <input
        id={id}
        aria-describedby={note === undefined ? undefined : `${id}-hint`}
        aria-invalid={fault !== null}
        className="field h-10 w-full text-base"
        {...rest}
      />
      {note !== undefined && (
        <p id={`${id}-hint`} className={`mt-1 text-sm ${fault === null ? 'text-soft' : 'text-red'}`}>
          {note}
        </p>
      )}
    </div>
  )
}
