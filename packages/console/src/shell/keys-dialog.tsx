import { Dialog } from '../ui/dialog.tsx'
import { PAGES } from './pages.ts'

const GROUPS = [
  {
    name: 'Everywhere',
    keys: [
      ['Ctrl K', 'Do something here, or go anywhere'],
      ...PAGES.map(({ key, name }) => [`g ${key}`, name] as const),
      ['?', 'Show these keys'],
      ['Esc', 'Close'],
    ],
  },
  {
    name: 'Runs',
    keys: [
      ['/', 'Search'],
      ['j k', 'Next, previous run'],
      ['Enter', 'Open the run'],
    ],
  },
  {
    name: 'Approvals',
    keys: [
      ['j k', 'Next, previous request'],
      ['a r', 'To Approve, Reject; Enter decides'],
      ['e', 'Write a reason'],
      ['x', 'Mark the request'],
      ['d', 'Decide the marked requests'],
      ['/', 'Search the history'],
    ],
  },
  {
    name: 'An issue',
    keys: [
      ['r i o', 'Resolve, ignore, reopen'],
      ['a', 'Assign'],
      ['m', 'Merge into another'],
      ['c', 'Comment'],
    ],
  },
  { name: 'Settings', keys: [['n', 'Make a new one']] },
  {
    name: 'A run',
    keys: [
      ['j k', 'Next, previous step'],
      ['[ ]', 'Previous, next problem'],
      ['t c b', 'Timeline, transcript, table'],
      ['/', 'Search in the run'],
      ['y', 'Copy a link to the step'],
      ['x', 'Compare with another run'],
    ],
  },
] as const

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="max-h-[80dvh] overflow-y-auto p-5">
        <h2 className="text-lg font-semibold">Keys</h2>
        {GROUPS.map(({ name, keys }) => (
          <section key={name} className="mt-4">
            <h3 className="text-sm font-medium text-soft">{name}</h3>
            <dl className="mt-1">
              {keys.map(([key, act]) => (
                <div key={key} className="flex items-center justify-between border-b border-line py-1.5 last:border-0">
                  <dt>{act}</dt>
                  <dd className="flex gap-1">
                    {key.split(' ').map((part) => (
                      <kbd
                        key={part}
                        className="min-w-6 rounded border border-edge px-1.5 text-center text-xs leading-5"
                      >
                        {part}
                      </kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}
