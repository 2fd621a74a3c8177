/** Computes the changes that make the server match the manifest. Pure. */
import type { DeployableKind, Deployment as Listed } from '@tacho/contract/policies/deployment.ts'
import type { Policy } from '@tacho/contract/policies/policy.ts'
import type { Prompt } from '@tacho/contract/policies/prompt.ts'
import type { ToolLabel } from '@tacho/contract/policies/tool-labels.ts'
import type { ToolLabels } from '@tacho/policy/history/tool-labels.ts'
import { hash } from 'node:crypto'
import {
  POLICY_FIELDS,
  type FileFault,
  type Manifest,
  type WantedEnvironment,
  type WantedPolicy,
  type WantedVersion,
} from './manifest.ts'

/** The state of the server. */
export interface Present {
  /** By name. */
  prompts: Map<string, Prompt>
  /** By id. */
  policies: Map<string, Policy>
  /** By name: existing environments that the manifest names. */
  environments: Map<string, PresentEnvironment>
}

export interface PresentEnvironment {
  id: string
  inForce: (Pick<Listed, 'kind' | 'id' | 'name' | 'version'> & Partial<Pick<Listed, 'share' | 'damaged'>>)[]
  /** By name: the share that ended last, if its prompt has not changed since. */
  endedShares?: ReadonlyMap<string, EndedShare>
  /** Undefined: labels were not read, because the file contains none. */
  labels?: readonly ToolLabel[]
}

export interface EndedShare {
  version: string
  by: string
}

export interface Plan {
  /** Items that are archived, but in the file. */
  restores: Restore[]
  writes: Write[]
  deployments: Deployment[]
  /** Changes for environments whose labels differ from the file's. */
  labels: LabelChange[]
  /**
   * Items that are deployed, but not in the file. They may belong to another repository, so they stay. Empty with
   * `prune`.
   */
  kept: Kept[]
  /** Shares in the file that have ended, for example by an alert. They do not start again. */
  notRestarted: NotRestarted[]
}

export interface NotRestarted extends EndedShare {
  environment: string
  name: string
}

export interface Kept {
  environment: string
  kind: DeployableKind
  name: string
  version: string
}

export interface Restore {
  kind: DeployableKind
  /** Name of the prompt, id of the policy. */
  name: string
}

/** A version to write. `changed` names the fields that differ from the newest version; null: create the item. */
export interface Write {
  kind: DeployableKind
  /** Name of the prompt, id of the policy. */
  name: string
  version: string
  changed: string[] | null
}

/** The changes of one environment, made in one publication. */
export interface Deployment {
  environment: string
  environmentId: string
  changes: DeploymentChange[]
}

export interface LabelChange {
  environment: string
  environmentId: string
  /** All rules of the environment after the change. */
  rules: ToolLabel[]
  /** Tools whose rules are removed or added. */
  removed: string[]
  added: string[]
}

export interface DeploymentChange {
  kind: DeployableKind
  name: string
  /** Null until the prompt is created. */
  id: string | null
  from: string | null
  to: string | null
  /** Percentage of the sessions that get `to`; 0 ends the share. */
  share?: number
}

export type Planned = { ok: true; plan: Plan } | { ok: false; faults: FileFault[] }

/** @param prune whether to undeploy items that the file does not list. */
export function planOf(manifest: Manifest, present: Present, { prune }: { prune: boolean }): Planned {
  const faults: FileFault[] = []
  const restores = restoresOf(manifest, present)
  const writes = [...promptWrites(manifest, present), ...policyWrites(manifest, present)]
  const newest = newestVersions(present, writes)
  const deployments: Deployment[] = []
  const labels: LabelChange[] = []
  const keptItems: Kept[] = []
  const notRestarted: NotRestarted[] = []
  const workspace = manifest.workspace === null ? '' : ` --workspace ${JSON.stringify(manifest.workspace)}`
  for (const [name, wanted] of manifest.environments) {
    const environment = present.environments.get(name)
    if (environment === undefined) {
      const message = `environments.${name}: this environment does not exist; create it with \`tacho environments create ${JSON.stringify(name)}${workspace}\``
      faults.push({ place: wanted.place, message })
      continue
    }
    const unlisted = unlistedIn(wanted, environment)
    if (!prune)
      keptItems.push(
        ...unlisted.map(({ kind, name: item, version }) => ({ environment: name, kind, name: item, version })),
      )
    const removed = unlisted.map(({ kind, name: item, id, version }): DeploymentChange => {
      return { kind, name: item, id, from: version, to: null }
    })
    const shares = shareChanges(wanted, environment, present, newest, faults)
    notRestarted.push(...shares.notRestarted.map((share) => ({ environment: name, ...share })))
    const versions = changesOf(wanted, environment, present, newest, faults)
    const changes = [...(prune ? removed : []), ...versions, ...shares.changes]
    if (changes.length > 0) deployments.push({ environment: name, environmentId: environment.id, changes })
    labels.push(...labelChanges(name, environment, manifest.labels, prune))
  }
  return faults.length > 0
    ? { ok: false, faults }
    : { ok: true, plan: { restores, writes, deployments, labels, kept: keptItems, notRestarted } }
}

/** Whether nothing would change. */
export function isEmpty({ restores, writes, deployments, labels }: Plan): boolean {
  return [restores, writes, deployments, labels].every((changes) => changes.length === 0)
}

/** A rule in the server's form. */
export function storedRule({ tool, output = [], does = [], when }: ToolLabels): ToolLabel {
  return {
    tool,
    ...(output.length > 0 && { output: [...new Set(output)] }),
    ...(does.length > 0 && { does: [...new Set(does)] }),
    ...(when !== undefined && { when }),
  }
}

/**
 * Label changes. A file without `labels` changes none. Rules of tools that the file does not name stay too, because
 * they may belong to another file. `prune` removes them.
 */
function labelChanges(
  environment: string,
  { id: environmentId, labels: present = [] }: PresentEnvironment,
  wanted: readonly ToolLabels[] | null,
  prune: boolean,
): LabelChange[] {
  if (wanted === null) return []
  const named = new Set(wanted.map(({ tool }) => tool))
  const others = prune ? [] : present.filter(({ tool }) => !named.has(tool))
  const rules = [...others, ...wanted.map(storedRule)]
  const [before, afterwards] = [present, rules].map((each) => each.map((rule) => JSON.stringify(rule)).toSorted())
  if (JSON.stringify(before) === JSON.stringify(afterwards)) return []
  const toolsOf = (texts: string[] = [], without: string[] = []) =>
    texts.filter((rule) => !without.includes(rule)).map((rule) => (JSON.parse(rule) as ToolLabel).tool)
  const [removed, added] = [toolsOf(before, afterwards), toolsOf(afterwards, before)]
  return [{ environment, environmentId, rules, removed, added }]
}

// --- archived items

function restoresOf({ prompts, policies, environments }: Manifest, present: Present): Restore[] {
  const listed = [...environments.values()]
  const namesOf = (kind: 'prompts' | 'policies', items: ReadonlyMap<string, unknown>) => {
    const names = new Set([...items.keys(), ...listed.flatMap((wanted) => [...(wanted[kind]?.keys() ?? [])])])
    return [...names].filter((name) => (present[kind].get(name)?.archivedAt ?? null) !== null)
  }
  return [
    ...namesOf('prompts', prompts).map((name): Restore => ({ kind: 'prompt', name })),
    ...namesOf('policies', policies).map((name): Restore => ({ kind: 'policy', name })),
  ]
}

// --- versions

function promptWrites({ prompts }: Manifest, present: Present): Write[] {
  return [...prompts].flatMap(([name, { content }]): Write[] => {
    const known = present.prompts.get(name)?.newest
    if (known === undefined) return [{ kind: 'prompt', name, version: '1', changed: null }]
    if (known.contentHash === hash('sha256', content)) return []
    return [{ kind: 'prompt', name, version: after(known.version), changed: ['content'] }]
  })
}

function policyWrites({ policies }: Manifest, present: Present): Write[] {
  return [...policies].flatMap(([name, wanted]): Write[] => {
    const known = present.policies.get(name)?.newest
    if (known === undefined) return [{ kind: 'policy', name, version: '1', changed: null }]
    const changed = POLICY_FIELDS.filter((field) => (known[field] ?? null) !== (wanted satisfies WantedPolicy)[field])
    const isOlder = known.onError === null && !wanted.saysOnError
    return changed.every((field) => isOlder && field === 'onError')
      ? []
      : [{ kind: 'policy', name, version: after(known.version), changed }]
  })
}

function after(version: string): string {
  return String(Number(version) + 1)
}

/** The newest versions after all writes, by kind and name. */
function newestVersions(present: Present, writes: Write[]): Map<string, string> {
  const newest = new Map<string, string>()
  for (const [name, prompt] of present.prompts) newest.set(`prompt ${name}`, prompt.newest.version)
  for (const [name, policy] of present.policies) newest.set(`policy ${name}`, policy.newest.version)
  for (const { kind, name, version } of writes) newest.set(`${kind} ${name}`, version)
  return newest
}

// --- environments

function changesOf(
  wanted: WantedEnvironment,
  { inForce }: PresentEnvironment,
  present: Present,
  newest: Map<string, string>,
  faults: FileFault[],
): DeploymentChange[] {
  const changes: DeploymentChange[] = []
  for (const [kind, versions] of [
    ['prompt', wanted.prompts],
    ['policy', wanted.policies],
  ] as const) {
    if (versions === null) continue
    const current = new Map(inForce.filter((row) => row.kind === kind).map((row) => [row.name, row]))
    for (const [name, version] of versions) {
      const to = versionOf(kind, name, version, newest, faults)
      const id = kind === 'policy' ? name : (present.prompts.get(name)?.promptId ?? null)
      const from = current.get(name)?.version ?? null
      if (from !== to) changes.push({ kind, name, id, from, to })
    }
  }
  return changes
}

function shareChanges(
  { prompts }: WantedEnvironment,
  { inForce, endedShares }: PresentEnvironment,
  present: Present,
  newest: Map<string, string>,
  faults: FileFault[],
) {
  const changes: DeploymentChange[] = []
  const notRestarted: Omit<NotRestarted, 'environment'>[] = []
  for (const [name, { share, version, place }] of prompts ?? []) {
    if (!share) continue
    const stable = version ?? newest.get(`prompt ${name}`) ?? '1'
    const to = versionOf('prompt', name, { version: share.version, place }, newest, faults)
    if (to === stable) {
      faults.push({
        place,
        message: `prompt ${name}: the share needs another version than the one in force, ${stable}`,
      })
    }
    const row = inForce.find((one) => one.kind === 'prompt' && one.name === name)
    // Deploying another version ends the running share.
    const running = row?.version === stable ? (row.share ?? null) : null
    const ended = row?.version === stable ? endedShares?.get(name) : undefined
    const isSame = running?.version === to && running.percent === share.percent
    if (isSame || (share.percent === 0 && running?.version !== to)) continue
    if (running === null && ended?.version === to) notRestarted.push({ name, ...ended })
    else {
      const id = present.prompts.get(name)?.promptId ?? null
      changes.push({ kind: 'prompt', name, id, from: stable, to, share: share.percent })
    }
  }
  return { changes, notRestarted }
}

/** Deployed items that the file does not list, of the kinds that it lists. */
function unlistedIn(wanted: WantedEnvironment, { inForce }: PresentEnvironment): PresentEnvironment['inForce'] {
  return inForce.filter(({ kind, name }) => {
    const versions = kind === 'prompt' ? wanted.prompts : wanted.policies
    return versions !== null && !versions.has(name)
  })
}

function versionOf(
  kind: DeployableKind,
  name: string,
  { version, place }: WantedVersion,
  newest: Map<string, string>,
  faults: FileFault[],
): string {
  const latest = newest.get(`${kind} ${name}`) ?? '1'
  if (version !== null && Number(version) > Number(latest)) {
    faults.push({ place, message: `${kind} ${name} has no version ${version}; the newest is ${latest}` })
  }
  return version ?? latest
}
