import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { NewRunView, RunView, RunColumn } from '@tacho/contract/runs/run-view.ts'
import { RUN_COLUMNS } from '@tacho/contract/engine/words.ts'
import { api } from '../../web/api.ts'
import type { Place } from '../../web/queries.ts'
import { Confirm, NameDialog } from '../../web/ui/form-dialog.tsx'
import { Button } from '../../web/ui/button.tsx'
import { MenuItem, Popover } from '../../web/ui/overlay.tsx'
import { viewsQuery } from './views.ts'
import { columnWord } from './columns.ts'

interface ViewMenuProps {
  place: Place
  /** The kind of views: of the whole list, or queues for judges. */
  kind: {
    label: string
    noun: string
    /** Label of the act that saves the current filters. */
    save: string
    empty: string
    hint: string
    name?: string
    has: (view: RunView) => boolean
  }
  /** The current filters. */
  view: Omit<NewRunView, 'name'>
  onOpen: (view: RunView) => void
}

type Opened = { is: 'save' } | { is: 'rename' | 'remove'; view: RunView }

/** Opens, saves, renames and deletes the views of the environment. */
export function ViewMenu({ place, kind, view: present, onOpen }: ViewMenuProps) {
  const [opened, setOpened] = useState<Opened | null>(null)
  const params = { environmentId: place.environment.id }
  const views = useQuery(viewsQuery(params.environmentId))
  const shown = views.data?.filter(kind.has)
  const canChange = place.may('approver')
  const close = () => setOpened(null)
  return (
    <>
      <Popover label={kind.label} className="ml-auto" panelClassName="max-h-96 w-80 max-w-full overflow-y-auto p-1">
        {shown?.length === 0 && <p className="px-2.5 py-1.5 text-soft">{kind.empty}</p>}
        {views.error !== null && <p className="px-2.5 py-1.5 text-red">The views could not be read.</p>}
        <ul>
          {shown?.map((view) => (
            <li key={view.id} className="flex items-center">
              <div className="min-w-0 flex-1">
                <MenuItem onClick={() => onOpen(view)}>
                  <bdi className="truncate" title={view.name}>
                    {view.name}
                  </bdi>
                </MenuItem>
              </div>
              {canChange && (
                <>
                  <Button
                    look="quiet"
                    data-closes
                    aria-label={`Rename ${view.name}`}
                    onClick={() => setOpened({ is: 'rename', view })}
                  >
                    Rename
                  </Button>
                  <Button
                    look="quiet"
                    data-closes
                    aria-label={`Delete ${view.name}`}
                    onClick={() => setOpened({ is: 'remove', view })}
                  >
                    Delete
                  </Button>
                </>
              )}
            </li>
          ))}
        </ul>
        {canChange && <MenuItem onClick={() => setOpened({ is: 'save' })}>{kind.save}…</MenuItem>}
      </Popover>
      {opened?.is === 'save' && (
        <NameDialog
          title={kind.save}
          act="Save"
          hint={kind.hint}
          {...(kind.name !== undefined && { name: kind.name })}
          maxLength={LIMITS.runViewNameChars}
          save={(name) => api.createRunView({ params, body: { name, ...present } })}
          onClose={close}
        />
      )}
      {opened?.is === 'rename' && (
        <NameDialog
          title={`Rename this ${kind.noun}`}
          act="Rename"
          hint={kind.hint}
          maxLength={LIMITS.runViewNameChars}
          name={opened.view.name}
          save={(name) => api.changeRunView({ params: { ...params, runViewId: opened.view.id }, body: { name } })}
          onClose={close}
        />
      )}
      {opened?.is === 'remove' && (
        <Confirm
          title={`Delete this ${kind.noun}?`}
          act="Delete"
          run={() => api.removeRunView({ params: { ...params, runViewId: opened.view.id } })}
          onClose={close}
        >
          <bdi className="font-medium text-ink">{opened.view.name}</bdi> disappears for everyone in this environment. No
          run is deleted.
        </Confirm>
      )}
    </>
  )
}

interface ColumnMenuProps {
  columns: readonly RunColumn[]
  onChange: (columns: readonly RunColumn[]) => void
}

export function ColumnMenu({ columns, onChange }: ColumnMenuProps) {
  const toggle = (column: RunColumn) =>
    onChange(RUN_COLUMNS.filter((one) => (one === column) !== columns.includes(one)))
  return (
    <Popover label="Columns" className="hidden sm:block" panelClassName="w-48 p-2">
      {RUN_COLUMNS.map((column) => (
        <label key={column} className="flex items-center gap-2 rounded-md px-2 py-1 hover:bg-hover">
          <input
            type="checkbox"
            checked={columns.includes(column)}
            disabled={column === 'run'}
            onChange={() => toggle(column)}
            className="accent-accent"
          />
          {columnWord(column)}
        </label>
      ))}
    </Popover>
  )
}
