/** Formats a result for the terminal. */
import { isMet, type Budget, type Result, type Row } from './result.ts'
import { figure, ratio, spread } from './text.ts'

export function resultLines({ rows, notes, table = [] }: Result): string[] {
  return [
    ...table.map((line) => `  ${line}`),
    ...rows.map((row) => `  ${rowText(row)}`),
    ...notes.map((note) => `  ${note}`),
  ]
}

function rowText(row: Row): string {
  const parts = [`${row.what}: ${withUnit(row, spread(row.ours))}`]
  if (row.bare !== null && row.ratio !== null) {
    parts.push(`bare ${withUnit(row, spread(row.bare))}`, `ratio ${spread(row.ratio, ratio)}`)
  }
  return [...parts, ...row.budgets.map((budget) => `${budgetText(row, budget)}: ${verdict(row, budget)}`)].join('; ')
}

/** For example `at least 0.60 of the bare limit` or `below 50 ms`. */
export function budgetText(row: Row, { of, is, limit }: Budget): string {
  return of === 'ratio' ? `${is} ${ratio(limit)} of the bare limit` : `${is} ${withUnit(row, figureOf(limit))}`
}

export function verdict(row: Row, budget: Budget): string {
  return isMet(row, budget) ? 'met' : 'missed'
}

export function withUnit({ unit }: Row, text: string): string {
  return unit === '' || unit.startsWith('/') ? `${text}${unit}` : `${text} ${unit}`
}

const figureOf = (limit: number): string => (Number.isInteger(limit) ? limit.toLocaleString('en-US') : figure(limit))
