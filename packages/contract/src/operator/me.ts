import Type, { type Static } from 'typebox'
import { nullableText, uuid } from '../fields.ts'
import { ROLES } from './access.ts'

const role = Type.Enum([...ROLES])

export const Me = Type.Object(
  {
    kind: Type.Enum(['operator', 'token'], { description: 'A person, or a token' }),
    id: Type.String(),
    name: Type.String(),
    email: nullableText('Of a person; null for a token'),
    twoFactor: Type.Boolean({ description: 'Whether a person signs in with a second factor' }),
    installation: Type.Boolean({ description: 'Whether they run the whole installation' }),
    everywhere: Type.Unsafe<(typeof ROLES)[number] | null>({
      enum: [...ROLES, null],
      description: 'The role that they have at least in every workspace; null: none',
    }),
    workspaces: Type.Array(Type.Object({ id: uuid('Workspace id'), name: Type.String(), role }), {
      description: 'Where they have a role of their own',
    }),
  },
  { $id: 'Me', description: 'Whoever asks' },
)
export type Me = Static<typeof Me>
