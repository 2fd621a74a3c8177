/** Prices of models for which clients report no cost: the workspace's own prices, and models without a price. */
import { DamagedChip } from '../../web/ui/state.tsx'
import { keepPreviousData, useQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import type { Price, NewPrice } from '@tacho/contract/runs/price.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import { api } from '../../web/api.ts'
import { Button } from '../../web/ui/button.tsx'
import { DataTable, type Column } from '../../web/ui/data-table.tsx'
import { compact, counted, number } from '../../web/text/format.ts'
import { useKeys } from '../../web/ui/keys.ts'
import { Nothing, Section, SectionPage } from '../../web/ui/section.tsx'
import { PagePending, Trouble, isBlocking } from '../../web/ui/states.tsx'
import { Time } from '../../web/text/times.tsx'
import { Confirm, FormDialog } from '../../web/ui/form-dialog.tsx'
import { Field } from '../../web/ui/field.tsx'

const route = getRouteApi('/w/$workspace/$environment/settings/prices')
const DAYS = 30
const DAY_MS = 86_400_000

interface UnpricedModel {
  model: string
  calls: number
  tokens: number
  lastHour: string | null
}

type Open = { is: 'set'; model: string; price?: Price } | { is: 'remove'; price: Price }

export function PricesPage() {
  const { place } = route.useRouteContext()
  const workspaceId = place.workspace.id
  const [open, setOpen] = useState<Open | null>(null)
  const close = () => setOpen(null)
  const prices = useQuery({
    queryKey: ['prices', workspaceId],
    queryFn: () => api.listPrices({ params: { workspaceId } }),
  })
  const unpriced = useUnpriced(place.environment.id)
  const canChange = place.may('admin')
  useKeys(canChange ? { n: () => setOpen({ is: 'set', model: '' }) } : {})

  const columns: Column<Price>[] = [
    { head: 'Model', main: true, cell: ({ model }) => <ModelName model={model} /> },
    {
      head: 'Input',
      right: true,
      cell: ({ input, damaged }) =>
        damaged ? <DamagedChip note="It changed on the disk and prices nothing. Set it again." /> : priceText(input),
    },
    { head: 'Output', right: true, cell: ({ output, damaged }) => (damaged ? '' : priceText(output)) },
    { head: 'Cache read', right: true, wide: true, cell: ({ cacheRead }) => priceText(cacheRead) },
    { head: 'Each call', right: true, wide: true, cell: ({ call }) => priceText(call) },
    { head: 'Changed', wide: true, cell: ({ changedAt }) => <Time at={changedAt} /> },
  ]
  const unpricedColumns: Column<UnpricedModel>[] = [
    {
      head: 'Model',
      main: true,
      cell: ({ model }) => (model === '' ? <span className="text-soft">no name</span> : <ModelName model={model} />),
    },
    { head: 'Calls', right: true, cell: ({ calls }) => number(calls) },
    { head: 'Tokens', right: true, wide: true, cell: ({ tokens }) => compact(tokens) },
    { head: 'Last call', wide: true, cell: ({ lastHour }) => lastHour && <Time at={lastHour} /> },
  ]
  if (canChange) {
    columns.push({
      head: 'Actions',
      right: true,
      cell: (price) => (
        <>
          <Button
            look="quiet"
            aria-label={`Change ${price.model}`}
            onClick={() => setOpen({ is: 'set', model: price.model, price })}
          >
            Change
          </Button>
          <Button look="quiet" aria-label={`Remove ${price.model}`} onClick={() => setOpen({ is: 'remove', price })}>
            Remove
          </Button>
        </>
      ),
    })
    unpricedColumns.push({
      head: 'Actions',
      right: true,
      cell: ({ model }) =>
        model !== '' && (
          <Button look="quiet" aria-label={`Set a price for ${model}`} onClick={() => setOpen({ is: 'set', model })}>
            Set price
          </Button>
        ),
    })
  }
  return (
    <SectionPage
      title="Prices"
      note="Calls without a recorded cost are estimated from their tokens and a price table that comes with the server. A price set here counts instead, for every environment of the workspace and for earlier calls too."
      act={
        canChange && (
          <Button look="accent" onClick={() => setOpen({ is: 'set', model: '' })}>
            Set a price
          </Button>
        )
      }
    >
      {isBlocking(prices.error, prices.data) ? (
        <Trouble error={prices.error} retry={() => void prices.refetch()} />
      ) : !prices.data ? (
        <PagePending />
      ) : (
        <>
          <Section
            title="Set by this workspace, in US dollars for a million tokens"
            className=""
            note={`Now in force: ${prices.data.priceTable}`}
          >
            {prices.data.items.length === 0 ? (
              <Nothing>No price is set: the price table counts for every model that it knows.</Nothing>
            ) : (
              <DataTable
                label="Prices for a million tokens"
                columns={columns}
                items={prices.data.items}
                keyOf={({ model }) => model}
              />
            )}
          </Section>
          <Section
            title="Models without a price"
            note={`${place.environment.name}, last ${DAYS} days`}
            className="mt-8"
          >
            {isBlocking(unpriced.error, unpriced.data) ? (
              <Trouble error={unpriced.error} retry={() => void unpriced.refetch()} />
            ) : unpriced.data?.items.length === 0 ? (
              <Nothing>Every model that was called has a price, or its calls say what they cost.</Nothing>
            ) : (
              <DataTable
                label="Models without a price"
                columns={unpricedColumns}
                items={unpriced.data?.items ?? []}
                keyOf={({ model }) => model}
              />
            )}
            {unpriced.data !== undefined && unpriced.data.others > 0 && (
              <p className="py-2 text-sm text-soft">And {counted(unpriced.data.others, 'call')} of other models.</p>
            )}
          </Section>
        </>
      )}
      {open?.is === 'set' && (
        <PriceDialog workspaceId={workspaceId} model={open.model} price={open.price ?? null} onClose={close} />
      )}
      {open?.is === 'remove' && (
        <Confirm
          title="Remove this price?"
          act="Remove"
          run={() => api.removePrice({ params: { workspaceId }, body: { model: open.price.model } })}
          onClose={close}
        >
          Estimates for <bdi className="font-mono text-ink">{open.price.model}</bdi> use the price table again. Recorded
          costs do not change.
        </Confirm>
      )}
    </SectionPage>
  )
}

function ModelName({ model }: { model: string }) {
  return (
    <bdi className="block truncate font-mono text-[0.8125rem]" title={model}>
      {model}
    </bdi>
  )
}

/** The price as it was entered: a small price keeps its digits. */
function priceText(price: number | undefined): string {
  return price === undefined ? '' : price.toLocaleString('en-US', { maximumFractionDigits: 9 })
}

function useUnpriced(environmentId: string) {
  return useQuery({
    queryKey: ['unpriced models', environmentId],
    queryFn: () => {
      const now = Date.now()
      const [from, to] = [new Date(now - DAYS * DAY_MS).toISOString(), new Date(now).toISOString()]
      return api.listUnpricedModels({ params: { environmentId }, query: { from, to } })
    },
    placeholderData: keepPreviousData,
  })
}

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
  /** Empty if the person must enter it. */
  model: string
  /** The current price. */
  price: Price | null
  onClose: () => void
}

function PriceDialog({ workspaceId, model, price, onClose }: Props) {
  const [name, setName] = useState(model)
  const [texts, setTexts] = useState<Record<Part, string>>(() => {
    const textOf = (pricePart: Part) => price?.[pricePart]?.toString() ?? ''
    return Object.fromEntries(PARTS.map(([part]) => [part, textOf(part)])) as Record<Part, string>
  })
  const set = useMutation({
    mutationFn: () => {
      const numbers = PARTS.filter(([part]) => texts[part] !== '').map(([part]) => [part, Number(texts[part])])
      // Keep rates that this form does not show.
      const { changedAt: _, ...ratesKept } = price ?? { changedAt: '' }
      const otherRates = Object.fromEntries(
        Object.entries(ratesKept).filter(([key]) => !PARTS.some(([part]) => part === key)),
      )
      const body = { ...otherRates, ...Object.fromEntries(numbers), model: name.trim() } as NewPrice
      return api.setPrice({ params: { workspaceId }, body })
    },
    onSuccess: onClose,
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
