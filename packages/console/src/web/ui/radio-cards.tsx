import { useId } from 'react'

interface RadioCardsProps<Value extends string> {
  legend: string
  value: Value
  options: readonly { value: Value; name: string; note: string }[]
  onChange: (value: Value) => void
}

/** A choice of one, each with a sentence about it. */
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
