/** The filters of the list of issues, each one row; see RUN_FILTERS. */
import { LIMITS } from '../engine/limits.ts'
import { ISSUE_STATES } from '../engine/words.ts'
import type { FilterRow } from '../web/filter.ts'

const text = { kind: 'text' } as const

export const ISSUE_FILTERS = {
  q: {
    kind: 'text',
    max: LIMITS.searchChars,
    describes:
      'Words that an issue must name, in any order: in its title, its facts, such as the tool and the message, or its agents. ' +
      `Case is ignored, and ids find the messages that leave them out. Examines ${LIMITS.searchedIssues} issues of the state, the last seen first`,
    flag: ['--search <words>', 'issues whose title, tool, message or agent have all these words'],
    field: { label: 'Search issues', placeholder: 'Title, tool, message or agent' },
  },
  state: { kind: 'words', words: ISSUE_STATES, describes: '', flag: ['--state <state>', ISSUE_STATES.join(', ')] },
  detectionType: {
    ...text,
    describes: 'Case and spacing are ignored',
    flag: ['--type <detectionType>', 'issues with detections of this type; case and spacing do not matter'],
    address: 'type',
    field: { label: 'Type', placeholder: 'Type, such as TOOL_BLOCKED' },
  },
  agentId: {
    ...text,
    describes: 'External agent id',
    flag: ['--agent <id>', 'issues of one agent, by its external id'],
    address: 'agent',
    field: { label: 'Agent', placeholder: 'Agent id' },
  },
  runId: {
    ...text,
    describes: 'External run id',
    flag: ['--run <id>', 'issues of one run, by its external id'],
    address: null,
  },
  assignee: {
    ...text,
    describes: 'Issues assigned to this person',
    flag: ['--assignee <name>', 'issues assigned to this person'],
    field: { label: 'Assignee' },
  },
  assigned: {
    kind: 'words',
    words: ['true', 'false'],
    describes: 'Whether the issue is assigned',
    flag: ['--unassigned', 'issues without an assignee', 'false'],
    field: { label: 'Assigned', all: 'Assigned or not', words: ['Assigned', 'Not assigned'] },
  },
  user: {
    kind: 'text',
    max: LIMITS.textChars,
    describes: `Issues in the newest ${LIMITS.issueUserRuns} runs for this end user`,
    flag: ['--user <id>', 'issues in the newest runs for one end user'],
    field: { label: 'End user' },
  },
  firstFrom: {
    kind: 'time',
    describes: 'Issues whose first detection was at this time or later',
    flag: ['--new <when>', 'issues first detected since, newest first: a time, or a duration ago such as 7d'],
  },
  firstTo: { kind: 'time', describes: 'Issues whose first detection was before this time' },
  from: {
    kind: 'time',
    describes: 'Issues whose last detection was at this time or later',
    flag: ['--from <when>', 'issues detected last since: a time, or a duration ago such as 7d'],
  },
  to: {
    kind: 'time',
    describes: 'Issues whose last detection was before this time',
    flag: ['--to <when>', 'issues detected last before: a time, or a duration ago'],
  },
  seenFrom: { kind: 'time', former: 'from', describes: 'The former name of from' },
  seenTo: { kind: 'time', former: 'to', describes: 'The former name of to' },
} as const satisfies Record<string, FilterRow>
