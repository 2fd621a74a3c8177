/** Shared by prompts and policies: versions that never change, and the diff of two versions. */
import Type, { type Static } from 'typebox'
import { importedAt, nullableText, text, time, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { VERSION_PATTERN } from '../engine/words.ts'

export const Version = Type.String({ $id: 'Version', pattern: VERSION_PATTERN, description: 'Version: "1", "2", …' })

export const versionFields = {
  version: Version,
  author: Type.String({ description: 'Who wrote it' }),
  note: nullableText('What changed, and why'),
  createdAt: time('When it was written'),
  importedAt,
}

export const damagedVersion = damaged('The stored version does not match its checksum: its text is left out')

export const newVersionFields = {
  note: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      maxLength: LIMITS.noteChars,
      description: 'What changed, and why',
    }),
  ),
}

/** Rejects a new version if the author has not seen the newest one. */
export const followsField = {
  follows: Type.Optional(
    Type.String({
      pattern: VERSION_PATTERN,
      description: 'The newest version the author has seen, for example "3"; rejected with 409 when a newer one exists',
    }),
  ),
}

export const isNew = Type.Boolean({
  description: 'False when the newest version is identical: no new version was created, and this is the newest',
})

export const DiffQuery = Type.Object({ from: Version, to: Version })

const DiffLine = Type.Object({
  change: Type.Enum(['same', 'removed', 'added']),
  text: text(LIMITS.promptContentBytes, 'The line, without its line break'),
})

export const VersionDiff = Type.Object(
  {
    from: Version,
    to: Version,
    fields: Type.Array(
      Type.Object({
        field: Type.String({ description: 'content, condition, severity, action, name or description' }),
        lines: Type.Array(DiffLine),
        exact: Type.Boolean({
          description:
            'False when the texts differ too much to match their lines. With more than 4,000 lines, each text is one',
        }),
      }),
      { description: 'The fields that differ' },
    ),
  },
  { $id: 'VersionDiff', description: 'The differences between two versions, line by line' },
)
export type VersionDiff = Static<typeof VersionDiff>
