/** The filters of the search of payloads, each one row; see RUN_FILTERS. */
import { LIMITS } from '../engine/limits.ts'
import type { FilterRow } from '../web/filter.ts'

/** Fields that a query can name, as in `tool:refund`. */
export const SEARCH_FIELDS = ['tool', 'type', 'agent', 'model', 'label'] as const
export type SearchField = (typeof SEARCH_FIELDS)[number]

export const SEARCH_FILTERS = {
  q: {
    kind: 'text',
    max: LIMITS.searchQueryChars,
    describes:
      'Words that an event must contain, "phrases", -excluded words and field:value, with the fields ' +
      `${SEARCH_FIELDS.join(', ')}. See docs/search.md`,
    field: {
      label: 'Search payloads',
      placeholder: 'Words, “phrases”, tool:refund, -without',
    },
  },
  from: {
    kind: 'time',
    describes: 'Events at or after this time; default: 30 days before `to`',
    flag: ['--from <when>', `a time, or a duration ago; default: ${LIMITS.searchedDaysDefault} days before --to`],
  },
  to: {
    kind: 'time',
    describes: 'Events before this time; default: now, and events of the next minutes',
    flag: ['--to <when>', 'a time, or a duration ago; default: now'],
  },
} as const satisfies Record<string, FilterRow>
