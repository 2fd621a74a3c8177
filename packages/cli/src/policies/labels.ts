/**
 * `tacho labels`: labels for the output and the effect of an environment's tools, for conditions on the past of a run.
 */
import type { ToolLabel, ToolLabels } from '@tacho/contract/policies/tool-labels.ts'
import type { Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { counted, printable, printEmpty, printJson, printLine, printTable } from '../engine/output.ts'
import { labelsOf } from './apply/read-manifest.ts'

export function addLabels(labels: Command): void {
  inEnvironment(labels.command('list').description('list the labels of tools, and which recorded tools have none'))
    .addHelpText('after', '\nExample:\n  tacho labels list')
    .action(list)
  inEnvironment(
    labels.command('set <file>').description('replace all labels of the environment with those of a tacho.yaml'),
  )
    .addHelpText(
      'after',
      '\nIt reads `labels` of the file and nothing else; `labels: []` removes all. `-` is standard input.\n\nExample:\n  tacho labels set tacho.yaml',
    )
    .action(set)
}

async function list(options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  printLabels(await client.readToolLabels({ params: { environmentId } }), options)
}

async function set(file: string, options: EnvironmentOptions): Promise<void> {
  const body = { labels: (await labelsOf(file)) as ToolLabel[] }
  const { client, environmentId } = await connected(options)
  printLabels(await client.changeToolLabels({ params: { environmentId }, body }), options)
}

function printLabels(stored: ToolLabels, { json }: EnvironmentOptions): void {
  if (json) return printJson(stored)
  const { labels, coverage } = stored
  if (labels.length === 0) printEmpty('No tool has labels. `tacho labels set tacho.yaml` sets those of a file.')
  else {
    printTable(
      [
        { title: 'TOOL' },
        { title: 'OUTPUT', isOptional: true },
        { title: 'DOES', isOptional: true },
        { title: 'WHEN', isOptional: true },
      ],
      labels.map(({ tool, output = [], does = [], when = '' }) => [tool, output.join(', '), does.join(', '), when]),
    )
  }
  if (coverage.tools === 0) return
  printLine(`Labelled: ${coverage.labelled} of ${counted(coverage.tools, 'recorded tool')}.`)
  if (coverage.unlabelled.length > 0) printLine(`Without labels: ${coverage.unlabelled.map(printable).join(', ')}`)
}
