import type { RunColumn } from '@tacho/contract/runs/run-view.ts'
import { RUN_COLUMNS } from '@tacho/contract/engine/words.ts'

/** Columns of the list of runs. A person chooses them; the address and saved views contain their names. */
const COLUMN_WORDS = {
  status: 'Status',
  run: 'Run',
  agent: 'Agent',
  session: 'Session',
  started: 'Started',
  length: 'Length',
  steps: 'Steps',
  why: 'Why',
  errors: 'Errors',
  tools: 'Tools',
  models: 'Models',
  tokens: 'Tokens',
  cost: 'Cost',
  scores: 'Scores',
} as const satisfies Record<RunColumn, string>

const BY_DEFAULT: readonly RunColumn[] = ['status', 'run', 'agent', 'started', 'length', 'tokens', 'cost']
const REMEMBERED = 'tacho.run-columns'

/** The known column names in an address, in the order of the list. */
export function columnsIn(text: string | undefined): RunColumn[] {
  const named = new Set((text ?? '').split(','))
  return RUN_COLUMNS.filter((column) => named.has(column))
}

export const columnWord = (column: RunColumn): string => COLUMN_WORDS[column]

/** The columns in the address; without any, the last choice in this browser. The run itself is always shown. */
export function columnsOf(text: string | undefined): readonly RunColumn[] {
  const known = columnsIn(text ?? localStorage.getItem(REMEMBERED) ?? '')
  return known.length === 0 ? BY_DEFAULT : RUN_COLUMNS.filter((column) => column === 'run' || known.includes(column))
}

export function rememberColumns(columns: readonly RunColumn[]): string {
  const text = columns.join(',')
  localStorage.setItem(REMEMBERED, text)
  return text
}
