import { LIMITS } from '../engine/limits.ts'
import type { OperatorRoute } from '../web/access.ts'
import { EnvironmentParams } from '../tenants/environment.ts'
import { NewPrice, Price, PriceList, PriceModel, UnpricedModels, UnpricedQuery } from './price.ts'
import { WorkspaceParams } from '../tenants/workspace.ts'

const common = { tag: 'Costs', scopes: [] } as const
const read = { ...common, method: 'GET', access: 'viewer', status: 200 } as const
const change = { ...common, method: 'POST', access: 'admin', status: 200, bodyBytes: LIMITS.operatorBodyBytes } as const

const PRICES = '/workspaces/{workspaceId}/prices'

/** Prices of models, for estimates of what calls cost. */
export const priceRoutes = {
  listPrices: {
    ...read,
    path: PRICES,
    summary: 'List the prices that the workspace has set',
    params: WorkspaceParams,
    reply: PriceList,
    errors: ['not_found'],
  },
  setPrice: {
    ...change,
    path: `${PRICES}/set`,
    audit: { action: 'price.set', target: 'price' },
    summary: 'Set what a model costs; estimates use it at once, also of earlier calls',
    params: WorkspaceParams,
    body: NewPrice,
    reply: Price,
    errors: ['not_found', 'conflict'],
  },
  removePrice: {
    ...change,
    path: `${PRICES}/remove`,
    audit: { action: 'price.remove', target: 'price' },
    summary: 'Remove a price of the workspace; the price table counts again',
    params: WorkspaceParams,
    body: PriceModel,
    reply: Price,
    errors: ['not_found'],
  },
  listUnpricedModels: {
    ...read,
    path: '/environments/{environmentId}/unpriced-models',
    summary: 'List models whose calls have neither a cost nor a price',
    params: EnvironmentParams,
    query: UnpricedQuery,
    reply: UnpricedModels,
    errors: ['not_found'],
  },
} as const satisfies Record<string, OperatorRoute>
