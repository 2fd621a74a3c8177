import { useId, type InputHTMLAttributes } from 'react'

interface FieldProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string
  hint?: string
  /** What is wrong with the value; shown instead of the hint. */
  fault?: string | null
}

export function Field({ label, hint, fault = null, className = '', ...rest }: FieldProps) {
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

interface SelectProps {
  label: string
  hint?: string
  value: string
  options: readonly (readonly [value: string, word: string])[]
  onChange: (value: string) => void
}

/** A labelled choice of one. */
export function SelectField({ label, hint, value, options, onChange }: SelectProps) {
  const id = useId()
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        {label}
      </label>
      <select
        id={id}
        aria-describedby={hint === undefined ? undefined : `${id}-hint`}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="field h-10 w-full text-base"
      >
        {options.map(([option, word]) => (
          <option key={option} value={option}>
            {word}
          </option>
        ))}
      </select>
      {hint !== undefined && (
        <p id={`${id}-hint`} className="mt-1 text-sm text-soft">
          {hint}
        </p>
      )}
    </div>
  )
}
