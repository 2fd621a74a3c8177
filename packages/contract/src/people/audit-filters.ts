/** The filters of the audit log, each one row; see RUN_FILTERS. A target is one flag of the CLI, `--target <kind[/id]>`. */
import { LIMITS } from '../engine/limits.ts'
import type { FilterRow } from '../web/filter.ts'

const text = { kind: 'text', max: LIMITS.auditFilterChars } as const

export const AUDIT_FILTERS = {
  action: {
    ...text,
    describes: 'Only this action, such as `api_key.create`',
    flag: ['--action <action>', 'only this action, such as api_key.create'],
    field: { label: 'Action', placeholder: 'Action, such as api_key.create' },
  },
  actorId: {
    ...text,
    describes: 'Only actions of this operator or token',
    flag: ['--actor <id>', 'only actions of this operator or token'],
    field: { label: 'Actor', placeholder: 'Actor id' },
  },
  targetKind: {
    ...text,
    describes: 'Only actions on this kind of target, such as `policy`',
    field: { label: 'Kind', placeholder: 'Kind of target' },
  },
  targetId: {
    ...text,
    describes: 'Only actions on the target with this id',
    field: { label: 'Id', placeholder: 'Id of target' },
  },
  from: {
    kind: 'time',
    describes: 'At or after',
    flag: ['--from <when>', 'at or after: a time, or a duration before now such as 7d'],
  },
  to: { kind: 'time', describes: 'Before', flag: ['--to <when>', 'before'] },
} as const satisfies Record<string, FilterRow>
