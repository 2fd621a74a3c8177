/**
 * What the one writer knows of rows it has read or written lately, so that most events cost one insert and no look-up.
 * It is right because nobody else writes; after a transaction that failed it must be made anew.
 */
import { randomUUIDv7 } from 'node:crypto'
import type { RunStatus } from '@tacho/contract/run.ts'
import { agentKey, textKey } from '../sql/keys.ts'
import type { NewEvent } from '../events.ts'
import type { Database } from './database.ts'

export interface KnownRun {
  id: string
  runId: string
  agentId: string
  receivedAt: number
  /** Not written yet. */
  isNew: boolean
  status: RunStatus
  startedAt: number
  hasSession: boolean
}

export interface KnownAgent {
  id: string
  key: string
  externalId: string | null
  /** Not written yet. */
  isNew: boolean
  name: string
  /** Event time of the name; -Infinity as long as no event has given it one. */
  nameTime: number
}

export interface KnownRows {
  run(environmentId: string, runId: string): KnownRun | null
  addRun(environmentId: string, runId: string, agentId: string, receivedAt: number): KnownRun
  /** The agent an event names, made when it is new. */
  agent(environmentId: string, event: NewEvent): KnownAgent
  /** The bucket of a model in the hourly rollup. */
  modelKey(environmentId: string, model: string): string
  /** Makes room; call it between transactions. */
  trim(): void
}

const RUNS_KEPT = 20_000
const AGENTS_KEPT = 10_000
/** Distinct models of an environment; later ones share a bucket, for each bucket is a row per hour and agent. */
export const MODELS_PER_ENVIRONMENT = 1_000
const OTHER_MODELS = 'other'

export function knownRows(db: Database): KnownRows {
  const runs = new Map<string, KnownRun>()
  const agents = new Map<string, KnownAgent>()
  const models = new Map<string, Map<string, string>>()
  const selectRun = db.prepare<
    [string, string],
    Omit<KnownRun, 'isNew' | 'hasSession'> & { sessionKey: string | null }
  >(
    `SELECT id, run_id AS runId, agent_id AS agentId, received_at AS receivedAt, status, started_at AS startedAt, session_key AS sessionKey
      FROM runs WHERE environment_id = ? AND run_id = ?`,
  )
  const selectAgent = db.prepare<[string, string], Omit<KnownAgent, 'isNew'>>(
    `SELECT id, agent_key AS key, external_id AS externalId, name, name_time AS nameTime
      FROM agents WHERE environment_id = ? AND agent_key = ?`,
  )
  const selectModels = db
    .prepare<[string], [string, string]>('SELECT model, model_key FROM models WHERE environment_id = ?')
    .raw()
  const insertModel = db.prepare('INSERT INTO models (environment_id, model_key, model) VALUES (?, ?, ?)')

  function modelsOf(environmentId: string): Map<string, string> {
    let known = models.get(environmentId)
    if (known === undefined) {
      known = new Map(selectModels.all(environmentId))
      models.set(environmentId, known)
    }
    return known
  }

  return {
    run(environmentId, runId) {
      const place = `${environmentId} ${runId}`
      const known = runs.get(place)
      if (known !== undefined) return known
      const row = selectRun.get(environmentId, runId)
      if (row === undefined) return null
      const { sessionKey, ...run } = row
      const found = { ...run, isNew: false, hasSession: sessionKey !== null }
      runs.set(place, found)
      return found
    },
    addRun(environmentId, runId, agentId, receivedAt) {
      const run: KnownRun = {
        id: randomUUIDv7(),
        runId,
        agentId,
        receivedAt,
        isNew: true,
        status: 'RUNNING',
        startedAt: Infinity,
        hasSession: false,
      }
      runs.set(`${environmentId} ${runId}`, run)
      return run
    },
    agent(environmentId, { agentId, agentName }) {
      const place = agentId === null ? `${environmentId} name ${agentName}` : `${environmentId} id ${agentId}`
      let agent = agents.get(place)
      if (agent === undefined) {
        const key = agentKey(agentId, agentName)
        const row = selectAgent.get(environmentId, key)
        agent = row
          ? { ...row, isNew: false }
          : { id: randomUUIDv7(), key, externalId: agentId, isNew: true, name: '', nameTime: -Infinity }
        agents.set(place, agent)
      }
      return agent
    },
    modelKey(environmentId, model) {
      if (model === '') return ''
      const known = modelsOf(environmentId)
      const bucket = known.has(model) || known.size < MODELS_PER_ENVIRONMENT ? model : OTHER_MODELS
      let key = known.get(bucket)
      if (key === undefined) {
        key = textKey(bucket)
        insertModel.run(environmentId, key, bucket)
        known.set(bucket, key)
      }
      return key
    },
    trim() {
      if (runs.size > RUNS_KEPT) runs.clear()
      if (agents.size > AGENTS_KEPT) agents.clear()
      if (models.size > RUNS_KEPT) models.clear()
    },
  }
}
