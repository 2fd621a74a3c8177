import type { OperatorRoute } from './access.ts'
import { Me } from './me.ts'

/** What concerns whoever asks. */
export const meRoutes = {
  readMe: {
    method: 'GET',
    access: 'signed-in',
    path: '/me',
    summary: 'Who asks, and what they may do',
    tag: 'Me',
    scopes: [],
    status: 200,
    reply: Me,
    errors: [],
  },
} as const satisfies Record<string, OperatorRoute>
