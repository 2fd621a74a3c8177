/** Pins a run, so that retention keeps it, or unpins it. */
import { known } from '../engine/known.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { printable, printJson, printLine, spokenTime } from '../engine/output.ts'

interface Pin {
  act: 'pinRun' | 'unpinRun'
  environmentId: string
  runId: string
}

export async function pinRun(
  client: OperatorClient,
  { act, environmentId, runId }: Pin,
  asJson: boolean,
): Promise<void> {
  const change = (id: string) => client[act]({ params: { environmentId, runId: id } })
  const run = await known('run', runId, { client, environmentId }, change)
  if (asJson) return printJson(run)
  const state = run.pinnedAt === null ? 'is not pinned' : `is pinned since ${spokenTime(run.pinnedAt)}`
  printLine(`Run ${printable(run.runId)} ${state}.`)
}
