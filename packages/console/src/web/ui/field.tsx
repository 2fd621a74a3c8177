import { useId, type InputHTMLAttributes } from 'react'

interface FieldProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string
  hint?: string
  /** Description of the invalid value; shown instead of the hint. */
  fault?: string | null
}

export function Field({ label, hint, fault = null, className = '', ...inputProps }: FieldProps) {
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
        {...inputProps}
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

/** A labelled select field. */
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

interface RadioCardsProps<Value extends string> {
  legend: string
  value: Value
  options: readonly { value: Value; name: string; note: string }[]
  onChange: (value: Value) => void
}

/** Radio buttons, each with a sentence about its choice. */
export function RadioCards<Value extends string>({ legend, value, options, onChange }: RadioCardsProps<Value>) {
  const id = useId()
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{legend}</legend>
      <div className="overflow-hidden rounded-lg border border-line">
        {options.map((option) => (
          <label
            key={option.value}
            className="flex cursor-pointer items-start gap-2.5 border-b border-line px-3 py-2 last:border-0 hover:bg-hover has-checked:bg-accent-wash"
          >
            <input
              type="radio"
              name={id}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="mt-1 accent-accent"
            />
            <span className="text-sm">
              <span className="block font-medium">{option.name}</span>
              <span className="text-soft">{option.note}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}

interface CheckListProps<Value extends string> {
  legend: string
  options: readonly (readonly [value: Value, note: string])[]
  chosen: readonly Value[]
  onChange: (chosen: Value[]) => void
}

/** Checkboxes. */
export function CheckList<Value extends string>({ legend, options, chosen, onChange }: CheckListProps<Value>) {
  const toggled = (value: Value) =>
    options.map(([one]) => one).filter((one) => (one === value ? !chosen.includes(one) : chosen.includes(one)))
  return (
    <fieldset>
      <legend className="mb-1 text-sm font-medium">{legend}</legend>
      {options.map(([value, note]) => (
        <label key={value} className="flex cursor-pointer items-baseline gap-2.5 py-1 text-sm">
          <input
            type="checkbox"
            checked={chosen.includes(value)}
            onChange={() => onChange(toggled(value))}
            className="accent-accent"
          />
          <span>
            <code className="font-mono">{value}</code> <span className="text-soft">{note}</span>
          </span>
        </label>
      ))}
    </fieldset>
  )
}
