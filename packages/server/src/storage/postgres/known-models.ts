/** Models with a bucket of their own in the hourly rollup. They are never taken away. */
import type { ClientBase } from 'pg'
import { textKey } from '../sql/keys.ts'
import { statement } from './statement.ts'

/** Distinct models of an environment, more or less; later ones share a bucket, for each is a row per hour and agent. */
const MODELS_PER_ENVIRONMENT = 1_000
const OTHER_MODELS = 'other'
const ENVIRONMENTS_KEPT = 200

export interface Buckets {
  /** By model. */
  keys: Map<string, string>
  /** Those that are not stored yet: key and model. */
  isNew: [key: string, model: string][]
}

const SELECT = statement('SELECT model_key AS key FROM models WHERE environment_id = $1')

export function knownModels() {
  const environments = new Map<string, Set<string>>()

  async function load(client: ClientBase, environmentId: string): Promise<Set<string>> {
    const { rows } = await client.query<{ key: string }>({ ...SELECT, values: [environmentId] })
    const known = new Set(rows.map(({ key }) => key))
    if (environments.size > ENVIRONMENTS_KEPT) environments.clear()
    environments.set(environmentId, known)
    return known
  }

  /** The buckets of these models. */
  async function bucketsOf(client: ClientBase, environmentId: string, models: Iterable<string>): Promise<Buckets> {
    const keys = new Map(Array.from(models, (model) => [model, model === '' ? '' : textKey(model)]))
    const isUnknown = (known: Set<string>) => [...keys.values()].some((key) => key !== '' && !known.has(key))
    let known = environments.get(environmentId)
    // Another node may have met them. A full set is full for ever.
    if (!known || (known.size < MODELS_PER_ENVIRONMENT && isUnknown(known))) known = await load(client, environmentId)
    const added = new Map<string, string>()
    for (const [model, key] of keys) {
      if (key === '' || known.has(key) || added.has(key)) continue
      const bucket = known.size + added.size < MODELS_PER_ENVIRONMENT ? model : OTHER_MODELS
      keys.set(model, textKey(bucket))
      if (!known.has(textKey(bucket))) added.set(textKey(bucket), bucket)
    }
    return { keys, isNew: [...added].toSorted(([a], [b]) => (a < b ? -1 : 1)) }
  }

  /** Notes what was committed. */
  function note(environmentId: string, { isNew }: Buckets): void {
    for (const [key] of isNew) environments.get(environmentId)?.add(key)
  }

  return { bucketsOf, note }
}
