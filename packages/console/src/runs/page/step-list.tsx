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
  /** Rows are as high as their content. */
  measured?: boolean
  /** Keeps the same function while rows look the same; with a new one, all rows would be drawn again. */
  children: (step: Step, isSelected: boolean, index: number) => ReactNode
}

/** A windowed list of steps: what is in the page does not grow with the run. The selected step stays in sight. */
export function StepList({ steps, selected, onSelect, label, rowPx, measured = false, children }: Props) {
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: useCallback(() => box.current, []),
    estimateSize: useCallback(() => rowPx, [rowPx]),
    // With another function, the places of all rows are computed again.
    getItemKey: useCallback((index: number) => steps[index]?.eventId ?? index, [steps]),
    overscan: measured ? 4 : 12,
  })
  const place = selected === null ? -1 : placeOf(steps, selected)
  useEffect(() => {
    if (place < 0) return
    // With rows of one height, the list need not ask the browser where they are.
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
  /** Null: as high as its content, which is measured. */
  rowPx: number | null
  measure: (row: HTMLElement | null) => void
  onSelect: (step: Step | null) => void
  children: (step: Step, isSelected: boolean, index: number) => ReactNode
}

/** Scrolling draws only the rows that come into sight, and stepping the two whose selection changes. */
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
        // A click that folds, copies or marks text in the row is not meant for the row.
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

/** Steps keep their order in every filtered list, except in a sorted table. */
function placeOf(steps: readonly Step[], { eventId, index }: Step): number {
  return steps[index]?.eventId === eventId ? index : steps.findIndex((step) => step.eventId === eventId)
}

/** Uses the measures of `Rows`: reading those of the box would force a layout. */
function bringIntoSight(box: HTMLElement, { scrollOffset, scrollRect }: Rows, top: number, rowPx: number): void {
  const height = scrollRect?.height || box.clientHeight
  const offset = scrollOffset ?? box.scrollTop
  if (top < offset) box.scrollTop = top
  else if (top + rowPx > offset + height) box.scrollTop = top + rowPx - height
}
