import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewPrice, Price } from '@tacho/contract/runs/price.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../web/api.ts'
import { Field } from '../../web/ui/field.tsx'
import { FormDialog } from '../../web/ui/form-dialog.tsx'

const PARTS = [
  ['input', 'Input', 'for a million tokens', true],
  ['output', 'Output', 'for a million tokens', true],
  ['cacheRead', 'Cache read', 'otherwise as input', false],
  ['cacheWrite', 'Cache write', 'otherwise as input', false],
  ['reasoning', 'Reasoning', 'otherwise as output', false],
  ['call', 'Each call', 'besides its tokens', false],
] as const
type Part = (typeof PARTS)[number][0]

interface Props {
  workspaceId: string
  /** Empty: a person names it. */
  model: string
  /** What it costs now. */
  price: Price | null
  onSettled: () => Promise<unknown>
  onClose: () => void
}

export function PriceDialog({ workspaceId, model, price, onSettled, onClose }: Props) {
  const [name, setName] = useState(model)
  const [texts, setTexts] = useState<Record<Part, string>>(() => {
    const textOf = (part: Part) => price?.[part]?.toString() ?? ''
    return Object.fromEntries(PARTS.map(([part]) => [part, textOf(part)])) as Record<Part, string>
  })
  const set = useMutation({
    mutationFn: () => {
      const numbers = PARTS.filter(([part]) => texts[part] !== '').map(([part]) => [part, Number(texts[part])])
      // What this form does not show stays.
      const { changedAt: _, ...kept } = price ?? { changedAt: '' }
      const rest = Object.fromEntries(Object.entries(kept).filter(([key]) => !PARTS.some(([part]) => part === key)))
      const body = { ...rest, ...Object.fromEntries(numbers), model: name.trim() } as NewPrice
      return api.setPrice({ params: { workspaceId }, body })
    },
    onSuccess: onClose,
    onSettled,
  })
  return (
    <FormDialog
      title={price === null ? 'Set a price' : 'Change a price'}
      act="Set price"
      isReady={name.trim() !== '' && texts.input !== '' && texts.output !== ''}
      isBusy={set.isPending}
      error={set.error}
      onSubmit={() => set.mutate()}
      onClose={onClose}
    >
      <div className="flex flex-col gap-4">
        <Field
          label="Model"
          hint="As the calls name it. Prices are in US dollars."
          value={name}
          onChange={(event) => setName(event.target.value)}
          maxLength={LIMITS.modelChars}
          readOnly={model !== ''}
          autoComplete="off"
          autoFocus={model === ''}
          required
        />
        <div className="grid grid-cols-2 gap-4">
          {PARTS.map(([part, label, hint, isRequired]) => (
            <Field
              key={part}
              label={label}
              hint={hint}
              type="number"
              inputMode="decimal"
              min={0}
              max={part === 'call' ? LIMITS.costPerCall : LIMITS.pricePerMillion}
              step="any"
              required={isRequired}
              autoFocus={model !== '' && part === 'input'}
              value={texts[part]}
              onChange={(event) => setTexts({ ...texts, [part]: event.target.value })}
            />
          ))}
        </div>
      </div>
    </FormDialog>
  )
}
