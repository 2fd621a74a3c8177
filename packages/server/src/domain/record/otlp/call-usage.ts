/** Conventions flatten a provider's usage into attributes. Below a prefix, the names are those of usage-shapes.ts. */
import { callCounts, snake, USAGE_NAMES } from '@tacho/contract/record/usage-shapes.ts'
import { isObject, parsed, set, type Attributes, type Json, type JsonObject } from './attributes.ts'

/** The first prefix that has a name counts. */
const PREFIXES = ['gen_ai.usage.', 'llm.token_count.', 'llm.usage.', 'ai.usage.', 'gen_ai.response.']
/** Attributes with a whole usage as a JSON text. */
const WHOLE = ['langfuse.observation.usage_details', 'mlflow.chat.tokenUsage', 'gen_ai.usage']
const COSTS = [
  'llm.cost.total',
  'gen_ai.usage.cost',
  'gen_ai.usage.total_cost',
  'gen_ai.cost.total_cost',
  'gen_ai.response.cost',
  'llm.response.cost',
  'operation.cost',
]

export function spanUsage(attributes: Attributes): JsonObject | undefined {
  return usageFrom(usageIn(attributes))
}

/** Renames counts to the contract's names. An unreadable count stays as sent, so that the reply warns of it. */
export function usageFrom(sent: JsonObject): JsonObject | undefined {
  const counts = callCounts(sent)
  if (counts === null) return undefined
  const { invalid, unknown, ...known } = counts
  // Do not rename: a renamed total would hide that it does not include the unreadable part.
  if (invalid.length > 0 && unknown.length > 0) return sent
  const usage = set(
    Object.fromEntries(
      Object.entries(known).map(([name, count]) => [
        name,
        count === 0 && isPart(name) ? undefined : (count ?? undefined),
      ]),
    ),
  )
  // Keep invalid values as sent, so that the reply and the event's warning name them.
  for (const path of invalid) put(usage, path.split('.'), valueAt(sent, path) ?? null)
  return usage
}

const isPart = (name: string) => !/^(?:prompt|completion|total)Tokens$/.test(name)

export function spanCost(attributes: Attributes): Json | undefined {
  const details = attributes.peekJson('langfuse.observation.cost_details')
  const parts = isObject(details) ? Object.values(details).map(costFrom) : []
  // If there is no total, an unreadable part becomes the cost, so that the reply warns of it.
  const badPart = parts.find((costPart) => costPart !== null && !isCost(costPart))
  const partsCost = badPart ?? (parts.length > 0 && parts.every(isCost) ? sumOf(parts) : null)
  const total = isObject(details) ? costFrom(details['total'] ?? partsCost) : undefined
  if (isCost(total)) return total
  const good = COSTS.find((name) => isCost(costFrom(attributes.peek(name) ?? null)))
  const cost = attributes.take(...(good === undefined ? COSTS : [good]))
  return cost === undefined ? (total ?? undefined) : costFrom(cost)
}

const isCost = (cost: Json | undefined): cost is number => typeof cost === 'number' && cost >= 0
/** Rounded, so that sums have no noise. */
const sumOf = (parts: number[]): number => Number(parts.reduce((sum, cost) => sum + cost, 0).toFixed(12))

/** Reads a text that is a number, such as `1e-3`. Other texts stay as sent, so that the reply warns of them. */
export function costFrom(sent: Json): Json {
  return typeof sent === 'string' && /^\d{1,15}(?:\.\d{1,40})?(?:e[-+]?\d{1,3})?$/i.test(sent) ? Number(sent) : sent
}

/** Known names in both spellings, without the modality of a list's item. */
const KNOWN_NAMES: ReadonlySet<string> = new Set(
  Object.values(USAGE_NAMES).flatMap((names) =>
    names.map((name) => name.replace(/\[.*/, '')).flatMap((name) => [name, snake(name)]),
  ),
)

function usageIn(attributes: Attributes): JsonObject {
  const usage: JsonObject = {}
  for (const prefix of PREFIXES) {
    for (const name of attributes.namesUnder(prefix)) {
      const path = name.slice(prefix.length)
      if (path === 'token_count' || !(KNOWN_NAMES.has(path) || path.endsWith('_details'))) continue
      if (prefix === 'gen_ai.response.' && !/^(?:prompt|completion|total)_tokens$/.test(path)) continue
      put(usage, path.split('.'), attributes.take(name) ?? null)
    }
  }
  for (const name of WHOLE) {
    const whole = attributes.peekJson(name)
    if (!isObject(whole)) continue
    attributes.take(name)
    for (const [member, value] of Object.entries(whole)) put(usage, [member], value)
  }
  return usage
}

function put(usage: JsonObject, [name = '', ...innerPath]: string[], value: Json): void {
  if (!Object.hasOwn(usage, name)) usage[name] = innerPath.length === 0 ? numbersOf(parsed(value)) : {}
  const inner = usage[name]
  if (innerPath.length > 0 && isObject(inner)) put(inner, innerPath, value)
}

function numbersOf(value: Json): Json {
  if (!isObject(value)) return countFrom(value)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, isObject(member) ? member : countFrom(member)]),
  )
}

/** Bridges send attributes as texts, and some integers with zeros after the point. */
export function countFrom(value: Json): Json {
  return typeof value === 'string' && /^\d{1,15}(?:\.\d{1,12})?$/.test(value) ? Number(value) : value
}

function valueAt(usage: Json | undefined, path: string): Json | undefined {
  return path.split('.').reduce((value, step) => (isObject(value) ? value[step] : undefined), usage)
}
