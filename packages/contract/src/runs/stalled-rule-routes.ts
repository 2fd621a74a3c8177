import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { StalledRule, StalledRuleChange } from './stalled-rule.ts'

const common = { tag: 'Runs', scopes: [], status: 200, params: EnvironmentParams, reply: StalledRule } as const
const PATH = '/environments/{environmentId}/stalled-rule'

/** What happens to runs that stop sending events. */
export const stalledRuleRoutes = {
  readStalledRule: {
    ...common,
    method: 'GET',
    access: 'viewer',
    path: PATH,
    summary: 'Read when running runs of an environment count as stalled',
    errors: ['not_found'],
  },
  changeStalledRule: {
    ...common,
    method: 'POST',
    access: 'admin',
    path: `${PATH}/change`,
    audit: { action: 'stalled_rule.change', target: 'environment' },
    summary: 'Change when running runs count as stalled, and what they are closed as',
    bodyBytes: LIMITS.operatorBodyBytes,
    body: StalledRuleChange,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
