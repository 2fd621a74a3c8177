import Type, { type Static } from 'typebox'
import { nullableText, uuid } from '../web/fields.ts'
import { ROLES } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'

const role = Type.Enum([...ROLES])

const Me = Type.Object(
  {
    kind: Type.Enum(['operator', 'token'], { description: 'A person, or a token' }),
    id: Type.String(),
    name: Type.String(),
    email: nullableText('E-mail of a person; null for a token'),
    twoFactor: Type.Boolean({ description: 'Whether the person signs in with a second factor' }),
    installation: Type.Boolean({ description: 'Whether the caller is an owner of the whole installation' }),
    everywhere: Type.Unsafe<(typeof ROLES)[number] | null>({
      enum: [...ROLES, null],
      description: "The caller's minimum role in every workspace; null: none",
    }),
    workspaces: Type.Array(Type.Object({ id: uuid('Workspace id'), name: Type.String(), role }), {
      description: 'Workspaces where the caller has a role of their own',
    }),
  },
  { $id: 'Me', description: 'The caller' },
)
type Me = Static<typeof Me>

/** The caller's own identity and permissions. */
export const meRoutes = {
  readMe: {
    method: 'GET',
    access: 'signed-in',
    path: '/me',
    summary: "Read the caller's identity and permissions",
    tag: 'Me',
    scopes: [],
    status: 200,
    reply: Me,
    errors: [],
  },
} as const satisfies Record<string, OperatorRoute>
