/** Formats a plan for people. Pure, except for colours. */
import { styleText } from 'node:util'
import { diffLines } from '../diff-lines.ts'
import { counted, printable, strong } from '../../engine/output.ts'
import { diffKey, type WriteDiff } from './diffs.ts'
import type { DeploymentChange, Kept, Plan, Write } from './plan.ts'

/** `diffs`: what each write changes, by `diffKey`. */
export function planLines(
  workspace: string,
  { restores, writes, deployments }: Omit<Plan, 'kept'>,
  diffs: ReadonlyMap<string, WriteDiff>,
): string[] {
  const lines: string[] = []
  if (restores.length + writes.length > 0) lines.push(strong(`Workspace ${printable(workspace)}`))
  lines.push(...restores.map(({ kind, name }) => green(`  + ${kind} ${printable(name)}: restore (was archived)`)))
  for (const write of writes) {
    const diff = diffs.get(diffKey(write))
    lines.push(writeLine(write), ...(diff === undefined ? [] : diffLines(diff).map((line) => `      ${line}`)))
  }
  for (const { environment, changes } of deployments) {
    lines.push(strong(`Environment ${printable(environment)}`), ...changes.map(changeLine))
  }
  return [...lines, '', summary({ restores, writes, deployments })]
}

/** What stays deployed though the file does not list it. */
export function keptLines(kept: readonly Kept[]): string[] {
  if (kept.length === 0) return []
  const items = kept.map(({ environment, kind, name, version }) => {
    return `    ${printable(environment)}: ${kind} ${printable(name)}, version ${version}`
  })
  return ['Deployed, but not in this file. These stay; --prune undeploys them:', ...items]
}

function writeLine({ kind, name, version, changed }: Write): string {
  const item = `${kind} ${printable(name)}`
  if (changed === null) return green(`  + ${item}: create version ${version}`)
  return yellow(`  ~ ${item}: new version ${version} (${changed.join(', ')})`)
}

function changeLine({ kind, name, from, to }: DeploymentChange): string {
  const item = `${kind} ${printable(name)}`
  if (to === null) return red(`  - ${item}: undeploy (was version ${from})`)
  if (from === null) return green(`  + ${item}: deploy version ${to}`)
  return yellow(`  ~ ${item}: version ${from} -> ${to}`)
}

function summary({ restores, writes, deployments }: Omit<Plan, 'kept'>): string {
  const created = writes.filter(({ changed }) => changed === null).length
  const changes = deployments.flatMap((deployment) => deployment.changes)
  const removed = changes.filter(({ to }) => to === null).length
  const parts = [
    restores.length > 0 ? `${restores.length} restored` : '',
    created > 0 ? `${created} created` : '',
    writes.length > created ? counted(writes.length - created, 'new version') : '',
    changes.length > removed ? `${changes.length - removed} deployed` : '',
    removed > 0 ? `${removed} undeployed` : '',
  ]
  return `Plan: ${parts.filter((part) => part !== '').join(', ')}.`
}

const painted = (colour: 'green' | 'yellow' | 'red') => (text: string) =>
  styleText(colour, text, { stream: process.stdout })
const green = painted('green')
const yellow = painted('yellow')
const red = painted('red')
