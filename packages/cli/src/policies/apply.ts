import type { Command } from 'commander'
import type { Manifest } from './apply/manifest.ts'
import { warnOf, type Compared } from './recorded-calls.ts'
import { carryOut, readPresent } from './apply/carry-out.ts'
import { readDiffs, type WriteDiff, keptLines, notRestartedLines, planLines } from './apply/plan-lines.ts'
import { faultyFile, manifestOf } from './apply/read-manifest.ts'
import { isEmpty, planOf, type Plan } from './apply/plan.ts'
import { asOperator, connect, type ServerOptions } from '../engine/options.ts'
import { printJson, printLine } from '../engine/output.ts'
import { canAsk, confirmed } from '../engine/ask.ts'
import { findWorkspace } from '../tenants/tenants.ts'

interface Options extends ServerOptions {
  file: string
  workspace?: string
  yes?: true
  dryRun?: true
  prune?: true
  note?: string
}

/** Exit code: differences exist, and nothing was changed. */
const DIFFERENT = 3

export function addApply(command: Command): void {
  asOperator(command)
    .requiredOption('-f, --file <file>', 'such as tacho.yaml; - reads standard input')
    .option('-w, --workspace <workspace>', 'name or id; by default the one in the file, or the only one')
    .option('-y, --yes', 'apply without asking')
    .option('--prune', 'undeploy what is deployed there, but not in the file')
    .option('--dry-run', 'show what would change; change nothing')
    .option('--note <text>', 'reason, stored with the new versions and deployments')
    .addHelpText(
      'after',
      `
The plan is shown first. Nothing changes without --yes or your confirmation on a terminal. Applying twice changes
nothing the second time. An environment gets the versions that the file lists. What else is deployed there stays, so
several files can share an environment; with --prune it is undeployed, and the plan says so first. Other environments
stay unchanged, and so do prompts or policies of an environment without such a list. Nothing is ever deleted.
An archived prompt or policy that the file lists is restored.

  workspace: acme                      # optional if there is only one
  prompts:
    greeting:
      file: prompts/greeting.md        # beside this file; or content: |
  policies:
    refunds:
      name: Large refunds              # optional, like description and message
      condition: tool.name == "refund_payment" && tool.input.amount > 100.0   # or file: policies/refunds.cel
      severity: HIGH                   # LOW, MEDIUM, HIGH, CRITICAL
      action: REQUIRE_APPROVAL         # ALLOW, WARN, REQUIRE_APPROVAL, BLOCK
      onError: act                     # optional: a condition that cannot be evaluated counts as a match; or ignore
      approvers: 2                     # optional: two different people must approve; or 1
      grants: never                    # optional: approvers cannot also allow calls to come; or allow
      template: Refund **{amount} {currency}** · {order_id}   # optional: how a request reads
  environments:
    staging:
      prompts: [greeting]              # the newest version, as in this file
      policies: [refunds]
    production:
      prompts:                         # version 4, and 5 for 10 % of the sessions
        greeting: { version: 4, share: { version: 5, percent: 10 } }
      policies: { refunds: 3 }         # this version

Exit codes: 0 no differences, or applied; 1 failed; 2 invalid file or command; 3 differences found, nothing changed.

Examples:
  tacho apply -f tacho.yaml
  tacho apply -f tacho.yaml --dry-run
  tacho apply -f tacho.yaml --prune
  tacho apply -f tacho.yaml --yes --note "Release 7"`,
    )
    .action(apply)
}

async function apply(options: Options): Promise<void> {
  const manifest = await manifestOf(options.file)
  const client = connect(options)
  const workspace = await findWorkspace(client, options.workspace ?? manifest.workspace ?? undefined)
  const present = await readPresent(client, workspace, manifest)
  const planned = planOf(manifest, present, { prune: options.prune === true })
  if (!planned.ok) throw faultyFile(options.file, planned.faults)
  const { plan } = planned
  const different = !isEmpty(plan)
  if (!options.json) {
    const diffs = await readDiffs(client, workspace.id, manifest, present, plan)
    showPlan(workspace.name, manifest, plan, diffs)
  }
  const warnings = await warnOf(client, comparedOf(manifest, plan))
  const applied = different && (await mayChange(options))
  if (applied) await carryOut(client, workspace.id, manifest, present, plan, options.note ?? null)
  if (different && !applied) process.exitCode = DIFFERENT
  if (options.json)
    printJson({ workspace: workspace.name, different, applied, ...plan, ...(warnings.length > 0 && { warnings }) })
  else if (applied) printLine('Done.')
  else if (different) process.stderr.write(`Nothing was changed${options.dryRun ? '' : '; add --yes to apply'}.\n`)
}

/**
 * Policies whose deployed version changes, with their content in the file. A policy with a version number was compared
 * when that version was new.
 */
function comparedOf({ policies, environments }: Manifest, { deployments, labels: changed }: Plan): Compared[] {
  return deployments.flatMap(({ environment, environmentId, changes }) =>
    changes.flatMap(({ kind, name: policy, to }): Compared[] => {
      const condition = policies.get(policy)?.condition
      const isNewest = environments.get(environment)?.policies?.get(policy)?.version === null
      if (kind !== 'policy' || to === null || condition === undefined || !isNewest) return []
      const labels = changed.find((change) => change.environmentId === environmentId)?.rules
      return [{ environmentId, environment, policy, condition, labels }]
    }),
  )
}

function showPlan(workspace: string, manifest: Manifest, plan: Plan, diffs: ReadonlyMap<string, WriteDiff>): void {
  if (isEmpty(plan)) printLine('Nothing to change: the server matches the file.')
  else for (const line of planLines(workspace, plan, diffs)) printLine(line)
  for (const line of [...keptLines(plan.kept), ...notRestartedLines(plan.notRestarted)]) printLine(line)
  if (manifest.environments.size > 0) return
  const parts = [...(manifest.policies.size > 0 ? ['policies'] : []), ...(manifest.labels?.length ? ['labels'] : [])]
  if (parts.length > 0) {
    printLine(
      `The file names no environment: its ${parts.join(' and ')} are in force nowhere. Name one under \`environments\`.`,
    )
  }
}

async function mayChange({ yes, dryRun, json }: Options): Promise<boolean> {
  if (dryRun) return false
  if (yes) return true
  return canAsk({ json }) && confirmed('Apply these changes?')
}
