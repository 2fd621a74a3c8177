/** Columns of the list of runs. A person chooses them; their names stand in the address and in saved views. */
const COLUMN_WORDS = {
  status: 'Status',
  run: 'Run',
  agent: 'Agent',
  session: 'Session',
  started: 'Started',
  length: 'Length',
  steps: 'Steps',
  errors: 'Errors',
  tools: 'Tools',
  models: 'Models',
  tokens: 'Tokens',
  cost: 'Cost',
} as const
export type RunColumn = keyof typeof COLUMN_WORDS

export const RUN_COLUMNS = Object.keys(COLUMN_WORDS) as RunColumn[]
const BY_DEFAULT: readonly RunColumn[] = ['status', 'run', 'agent', 'started', 'length', 'steps', 'tokens', 'cost']
const REMEMBERED = 'tacho.run-columns'

export const columnWord = (column: RunColumn): string => COLUMN_WORDS[column]

/** Those of the address, or the last that this browser chose. The run itself always shows. */
export function columnsOf(text: string | undefined): readonly RunColumn[] {
  const named = new Set((text ?? localStorage.getItem(REMEMBERED) ?? '').split(','))
  const known = RUN_COLUMNS.filter((column) => named.has(column))
  return known.length === 0 ? BY_DEFAULT : RUN_COLUMNS.filter((column) => column === 'run' || named.has(column))
}

export function rememberColumns(columns: readonly RunColumn[]): string {
  const text = columns.join(',')
  localStorage.setItem(REMEMBERED, text)
  return text
}
