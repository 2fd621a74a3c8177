import { useState } from 'react'
import { Dialog } from '../ui/overlay.tsx'
import { areKeysOn, switchKeys } from '../ui/keys.ts'
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
    name: 'Issues',
    keys: [
      ['j k', 'Next, previous issue'],
      ['x', 'Choose the issue'],
      ['e i o', 'Resolve, ignore, reopen the chosen ones, or this one'],
      ['a', 'Assign'],
      ['m', 'Merge'],
      ['u', 'Undo'],
      ['/', 'Search'],
    ],
  },
  {
    name: 'An issue',
    keys: [
      ['j k', 'Older, newer occurrence'],
      ['e i o', 'Resolve, ignore, reopen'],
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
      ['x X', 'Compare with another run, with the last good one'],
    ],
  },
] as const

export function KeysDialog({ onClose }: { onClose: () => void }) {
  const [isOn, setOn] = useState(areKeysOn)
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="max-h-[80dvh] overflow-y-auto p-5">
        <h2 className="text-lg font-semibold">Keys</h2>
        <label className="mt-3 flex cursor-pointer items-baseline gap-2.5 text-sm">
          <input
            type="checkbox"
            checked={isOn}
            onChange={() => {
              switchKeys(!isOn)
              setOn(!isOn)
            }}
            className="accent-accent"
          />
          <span>
            Keys of one character{' '}
            <span className="block text-soft">
              Off, for speech input: only Ctrl K, Enter, Esc and arrows work. Kept in this browser.
            </span>
          </span>
        </label>
        {GROUPS.map(({ name, keys }) => (
          <section key={name} className="mt-4">
            <h3 className="text-sm font-medium text-soft">{name}</h3>
            <dl className="mt-1">
              {keys.map(([key, act]) => (
                <div key={key} className="flex items-center justify-between border-b border-line py-1.5 last:border-0">
                  <dt>{act}</dt>
                  <dd className="flex gap-1">
                    {key.split(' ').map((keyText) => (
                      <kbd
                        key={keyText}
                        className="min-w-6 rounded border border-edge px-1.5 text-center text-xs leading-5"
                      >
                        {keyText}
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
