/** How well groups match causes. */
export interface Quality {
  groups: number
  /** The share of failures whose group is mostly about their cause. Lower: different causes are in one group. */
  purity: number
  /** The share of failures that are in the largest group of their cause. Lower: one cause is in several groups. */
  completeness: number
}

export function qualityOf(items: readonly { cause: string; group: string }[]): Quality {
  const share = (by: 'cause' | 'group', of: 'cause' | 'group'): number => {
    const largest = [...Map.groupBy(items, (item) => item[by]).values()].map((same) => {
      return Math.max(...[...Map.groupBy(same, (item) => item[of]).values()].map(({ length }) => length))
    })
    return Math.round((largest.reduce((sum, count) => sum + count, 0) / items.length) * 1_000) / 1_000
  }
  return {
    groups: new Set(items.map(({ group }) => group)).size,
    purity: share('group', 'cause'),
    completeness: share('cause', 'group'),
  }
}
