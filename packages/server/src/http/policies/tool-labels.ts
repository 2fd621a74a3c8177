import type { FastifyRequest } from 'fastify'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { ToolLabel, ToolLabels } from '@tacho/contract/policies/tool-labels.ts'
import { HISTORY_LABELS } from '@tacho/policy/history/run-history.ts'
import { compileCondition } from '@tacho/policy/compile.ts'
import { fieldsOf } from '@tacho/policy/language/fields.ts'
import { namesTool } from '@tacho/policy/history/tool-labels.ts'
import type { ToolLabelsRow } from '../../storage/policies/deployments.ts'
import { hourOf, isoTime } from '../../storage/engine/times.ts'
import type { SchemaFault } from '../../domain/web/schema-faults.ts'
import type { BodyValidator } from '../record/body-validator.ts'
import { holderOf } from '../tenants/rate-limit.ts'
import { foundOr, refuse } from '../web/reply-error.ts'
import type { OperatorDeps } from '../web/operator-serve.ts'

const UNLABELLED_SHOWN = 50
/** How far back calls are counted: tools without recent calls need no labels. */
const COVERAGE_MS = 30 * 86_400_000
/** Labels that `run.labels` and `origin` define themselves. */
const OWN_LABELS: ReadonlySet<string> = new Set(Object.values(HISTORY_LABELS))

export function toolLabelsRoutes({ serve, storage, configurations, bodyValidator }: OperatorDeps): void {
  serve('readToolLabels', async ({ environment: { id }, at }) => toToolLabels(id, await storage.findToolLabels(id), at))

  serve('changeToolLabels', async ({ request, body: { labels }, environment: { id }, actor, at, audit }) => {
    const rules = await checkLabels(bodyValidator, labels, request)
    const row = { rules, changedAt: at, changedBy: actor.name }
    const detail = { rules: rules.length, tools: rules.slice(0, 20).map(({ tool }) => tool) }
    const stored = foundOr(await storage.changeToolLabels(id, row, audit(id, detail)), NO_ENVIRONMENT)
    configurations.published(id)
    return toToolLabels(id, stored, at)
  })

  async function toToolLabels(environmentId: string, row: ToolLabelsRow | null, at: number): Promise<ToolLabels> {
    const labels = row?.rules ?? []
    const tools = await storage.listToolNames(environmentId, hourOf(at - COVERAGE_MS))
    const unlabelled = tools.filter((name) => !labels.some((rule) => namesTool(rule, { name })))
    const coverage = {
      tools: tools.length,
      labelled: tools.length - unlabelled.length,
      unlabelled: unlabelled.slice(0, UNLABELLED_SHOWN).toSorted(),
    }
    return { labels, changedAt: isoTime(row?.changedAt ?? null), changedBy: row?.changedBy ?? null, coverage }
  }
}

/** Faults of rules, with their places, even of rules that only a simulation uses. */
export async function checkLabels(
  bodyValidator: BodyValidator,
  labels: readonly ToolLabel[],
  request: FastifyRequest,
  member = 'labels',
): Promise<ToolLabel[]> {
  const rules = labels.map(withoutEmpty)
  const faults = labelFaults(rules, member)
  for (const [index, rule] of rules.entries()) {
    const { when } = rule
    if (when === undefined || faults.length > 0) continue
    const conditionFaults = await bodyValidator.conditionFaults(when, holderOf(request), true)
    if ('ok' in conditionFaults) throw refuse(conditionFaults.code, conditionFaults.detail)
    const messages = conditionFaults.map(({ message }) => message)
    if (messages.length === 0) messages.push(...unusableReads(rule))
    faults.push(...messages.map((message) => ({ path: `/${member}/${index}/when`, message })))
  }
  const [first] = faults
  if (first) throw refuse('invalid_request', `${first.path.slice(1)} ${first.message}`, { errors: faults })
  return rules
}

/** Variables that clients know when they assign labels. */
const READABLE = ['tool.name', 'tool.server', 'tool.annotations', 'tool.input', 'tool.output', 'now']

/** Facts in a condition that no client can evaluate. */
function unusableReads({ does = [], when = '' }: ToolLabel): string[] {
  const compiled = compileCondition(when, true)
  if (!compiled.ok) return []
  const { variables } = fieldsOf(compiled.condition)
  const others: string[] = variables.filter((name) => !READABLE.includes(name))
  if (compiled.condition.readsHistory && others.length === 0) others.push('origin')
  const faults = others.length === 0 ? [] : [`can read ${READABLE.join(', ')} only, not ${others.join(', ')}`]
  if (does.length > 0 && variables.includes('tool.output')) {
    faults.push(
      'reads tool.output, which is not known when `does` is needed: before the call. Give `does` in a rule of its own',
    )
  }
  return faults
}

const NO_ENVIRONMENT = refuse('not_found', 'The environment does not exist')

function withoutEmpty({ tool, output = [], does = [], when }: ToolLabel): ToolLabel {
  return {
    tool,
    ...(output.length > 0 && { output: [...new Set(output)] }),
    ...(does.length > 0 && { does: [...new Set(does)] }),
    ...(when !== undefined && { when }),
  }
}

function labelFaults(rules: readonly ToolLabel[], list: string): SchemaFault[] {
  const faults: SchemaFault[] = []
  const outputs = new Set<string>()
  for (const [index, { tool, output = [], does = [] }] of rules.entries()) {
    const fault = (member: string, message: string) => faults.push({ path: `/${list}/${index}${member}`, message })
    if (tool.split('*').length > 2) fault('/tool', 'can have one *')
    if (output.length + does.length === 0) fault('', 'must give labels: output, does or both')
    for (const label of [...output, ...does]) {
      if (OWN_LABELS.has(label)) fault('', `must not give the label ${label}: clients give this label by themselves`)
    }
    for (const label of output) outputs.add(label)
  }
  const most = LIMITS.toolLabelsOfOutputs
  if (outputs.size > most)
    faults.push({
      path: `/${list}`,
      message: `give ${outputs.size} different labels of outputs; clients tell ${most} apart`,
    })
  return faults
}
