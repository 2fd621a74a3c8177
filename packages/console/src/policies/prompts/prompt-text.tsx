import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { useId } from 'react'
import { bytes } from '../../web/text/format.ts'

interface Props {
  value: string
  onChange: (text: string) => void
  readOnly: boolean
}

const VARIABLE = /\{\{\s*([\w.-]{1,100})\s*\}\}/g

/** The text of a prompt, its variables and its size. */
export function PromptText({ value, onChange, readOnly }: Props) {
  const id = useId()
  const variables = [...new Set(Array.from(value.matchAll(VARIABLE), ([, name = '']) => name))]
  const size = new TextEncoder().encode(value).length
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-sm font-medium">
        Text
      </label>
      <textarea
        id={id}
        rows={16}
        readOnly={readOnly}
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="field h-auto w-full py-2 font-mono"
      />
      <p className="mt-1 flex flex-wrap justify-between gap-x-3 text-sm text-soft">
        <span>
          {variables.length > 0 && (
            <>
              Variables:{' '}
              {variables.map((name, index) => (
                <span key={name}>
                  {index > 0 && ', '}
                  <code className="font-mono text-ink">{name}</code>
                </span>
              ))}
            </>
          )}
        </span>
        <span className={size > LIMITS.promptContentBytes ? 'font-medium text-red' : ''}>
          {bytes(size)} of {bytes(LIMITS.promptContentBytes)}
        </span>
      </p>
    </div>
  )
}
