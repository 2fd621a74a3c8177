import { useVirtualizer, type Virtualizer } from '@tanstack/react-virtual'
import { memo, useCallback, useEffect, useRef, type ReactNode } from 'react'
import type { Step } from '../queries.ts'

export interface StepListProps {
  steps: readonly Step[]
  selected: Step | null
  onSelect: (step: Step | null) => void
}

interface Props extends StepListProps {
  label: string
  rowPx: number
  /** Whether row heights depend on the content. */
  measured?: boolean
  /** Renders a row. Pass the same function while rows look the same, because a new one renders all rows again. */
  children: (step: Step, isSelected: boolean, index: number) => ReactNode
}

/** A windowed list of steps: the page contains only visible rows. The selected step stays visible. */
export function StepList({ steps, selected, onSelect, label, rowPx, measured = false, children }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: useCallback(() => box.current, []),
    estimateSize: useCallback(() => rowPx, [rowPx]),
    // Memoised: with a new function, the positions of all rows are computed again.
    getItemKey: useCallback((index: number) => steps[index]?.eventId ?? index, [steps]),
    overscan: measured ? 4 : 12,
  })
  const place = selected === null ? -1 : placeOf(steps, selected)
  useEffect(() => {
    if (place < 0) return
    // If all rows have one height, compute the position instead of asking the browser.
    if (measured) rows.scrollToIndex(place, { align: 'auto' })
    else if (box.current) bringIntoSight(box.current, rows, place * rowPx, rowPx)
  }, [place, rows, measured, rowPx])

  return (
    <div
      ref={box}
      tabIndex={0}
      role="list"
      aria-label={label}
      className="min-h-0 flex-1 overflow-y-auto overscroll-contain"
    >
      <div role="presentation" className="relative" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => {
          const step = steps[index]
          return (
            step && (
              <Row
                key={key}
                step={step}
                index={index}
                start={start}
                size={steps.length}
                isSelected={step === selected}
                rowPx={measured ? null : rowPx}
                measure={rows.measureElement}
                onSelect={onSelect}
              >
                {children}
              </Row>
            )
          )
        })}
      </div>
    </div>
  )
}

type Rows = Virtualizer<HTMLDivElement, Element>

interface RowProps {
  step: Step
  index: number
  start: number
  size: number
  isSelected: boolean
  /** Null: the height depends on the content and is measured. */
  rowPx: number | null
  measure: (row: HTMLElement | null) => void
  onSelect: (step: Step | null) => void
  children: (step: Step, isSelected: boolean, index: number) => ReactNode
}

/** Memoised: scrolling renders only new rows, and a new selection renders two rows. */
const Row = memo(function Row(props: RowProps) {
  const { step, index, start, size, isSelected, rowPx, measure, onSelect, children } = props
  return (
    <div
      ref={rowPx === null ? measure : undefined}
      role="listitem"
      aria-setsize={size}
      aria-posinset={index + 1}
      aria-current={isSelected ? 'step' : undefined}
      data-index={index}
      onClick={(event) => {
        // Ignore clicks that fold, copy or select text inside the row.
        if (event.target instanceof Element && event.target.closest('button, a, summary, input')) return
        if (window.getSelection()?.isCollapsed === false) return
        onSelect(step)
      }}
      className="absolute inset-x-0 top-0"
      style={{ transform: `translateY(${start}px)`, ...(rowPx === null ? {} : { height: rowPx }) }}
    >
      {children(step, isSelected, index)}
    </div>
  )
})

/** The index of a step. Filtered lists keep the order of steps; a sorted table does not. */
function placeOf(steps: readonly Step[], { eventId, index }: Step): number {
  return steps[index]?.eventId === eventId ? index : steps.findIndex((step) => step.eventId === eventId)
}

/** Scrolls by the positions in `Rows`: reading those of the box would force a layout. */
function bringIntoSight(box: HTMLElement, { scrollOffset, scrollRect }: Rows, top: number, rowPx: number): void {
  const height = scrollRect?.height || box.clientHeight
  const offset = scrollOffset ?? box.scrollTop
  if (top < offset) box.scrollTop = top
  else if (top + rowPx > offset + height) box.scrollTop = top + rowPx - height
}
