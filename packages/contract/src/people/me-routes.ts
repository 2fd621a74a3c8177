import type { OperatorRoute } from '../web/access.ts'
import { Me } from './me.ts'

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
