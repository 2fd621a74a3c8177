import Type, { type Static } from 'typebox'
import { id, nullableTime, time, damaged } from '../web/fields.ts'
import { LIMITS } from '../engine/limits.ts'
import { LONG_CONTEXTS } from '../engine/words.ts'
import type { OperatorRoute } from '../web/route.ts'
import { EnvironmentParams, WorkspaceParams } from '../tenants/workspace.ts'

const price = (description: string) =>
  Type.Number({
    minimum: 0,
    maximum: LIMITS.pricePerMillion,
    description: `${description}, in US dollars for a million`,
  })
const optional = (description: string) => Type.Optional(price(description))

const AS_TEXT = 'otherwise as text, and the cost is at least that'

const tokens = {
  input: price('Input tokens'),
  output: price('Output tokens'),
  cacheRead: optional('Input tokens read from a cache; otherwise as input'),
  cacheWrite: optional('Input tokens written to a cache; otherwise as input'),
  cacheWrite1h: optional('Input tokens written to a cache for an hour; otherwise as cacheWrite'),
  reasoning: optional('Reasoning tokens; otherwise as output'),
  audioInput: optional(`Audio tokens of the input; ${AS_TEXT}`),
  cachedAudio: optional(`Audio tokens read from a cache; ${AS_TEXT}`),
  imageInput: optional(`Image tokens of the input; ${AS_TEXT}`),
  cachedImage: optional(`Image tokens read from a cache; ${AS_TEXT}`),
  audioOutput: optional(`Audio tokens of the output; ${AS_TEXT}`),
  imageOutput: optional(`Image tokens of the output; ${AS_TEXT}`),
}

const longContext = Type.Object(
  {
    above: Type.Enum([...LONG_CONTEXTS], { description: 'Calls with more input tokens than this cost these prices' }),
    ...tokens,
  },
  { description: 'Prices of calls with a long context' },
)

const model = id(LIMITS.modelChars, 'Name of the model, as LLM_CALL events give it')

/** A price that a workspace sets. It replaces the price table's. */
export const Price = Type.Object(
  {
    model,
    ...tokens,
    call: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: LIMITS.costPerCall,
        description: 'Each call, besides its tokens, in US dollars',
      }),
    ),
    longContext: Type.Optional(longContext),
    changedAt: time('When it was last set'),
    damaged: damaged(
      'The stored price does not match its checksum: it is 0 here, and calls of the model have no price',
    ),
  },
  { $id: 'Price', description: 'What a model costs in a workspace' },
)
export type Price = Static<typeof Price>

const { changedAt: _, damaged: __, ...set } = Price.properties
export const NewPrice = Type.Object(set, {
  $id: 'NewPrice',
  examples: [{ model: 'our-llama', input: 0.2, output: 0.6, cacheRead: 0.05 }],
})
export type NewPrice = Static<typeof NewPrice>

const PriceModel = Type.Object({ model }, { $id: 'PriceModel', examples: [{ model: 'our-llama' }] })

const PriceList = Type.Object(
  {
    priceTable: Type.String({ description: 'What estimates use now: the table and a digest of these prices' }),
    items: Type.Array(Price),
  },
  { $id: 'PriceList', description: 'The prices that a workspace has set, by model' },
)

const UnpricedQuery = Type.Object({
  from: time('Start of the window, inclusive'),
  to: time('End of the window, exclusive'),
})

const UnpricedModels = Type.Object(
  {
    items: Type.Array(
      Type.Object({
        model: Type.String({ description: 'Empty: calls that name no model' }),
        calls: Type.Integer({ minimum: 1 }),
        tokens: Type.Integer({ minimum: 0 }),
        lastHour: nullableTime('Start of the hour, or of the day in a long window, of its latest call'),
      }),
    ),
    others: Type.Integer({ minimum: 0, description: 'Calls of further models' }),
  },
  { $id: 'UnpricedModels', description: 'Models without a price, the ones with the most calls first' },
)

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
