import { allItems } from '@tacho/client/items.ts'
import type { Erasure, ErasureKind, ErasurePreview } from '@tacho/contract/data/erasure.ts'
import { ERASURE_KINDS } from '@tacho/contract/engine/words.ts'
import { stillRunning } from '@tacho/contract/runs/run-text.ts'
import type { Command } from 'commander'
import { connected } from '../engine/connected.ts'
import { inEnvironment, type EnvironmentOptions } from '../engine/options.ts'
import { wrongUsage } from '../engine/stop.ts'
import { canAsk, confirmed } from '../engine/ask.ts'
import { counted, printJson, printLine, printTable } from '../engine/output.ts'

interface EraseOptions extends EnvironmentOptions {
  field?: string
  reason?: string
  yes?: true
}

const ABOUT: Record<ErasureKind, string> = {
  run: 'erase one run',
  session: 'erase every run of a session',
  agent: 'erase every run of an agent',
  client: 'erase every run with an event that a client sent',
  user: 'erase every run of a user: by session id, end user, or a payload field',
}

export function addErase(erase: Command): void {
  for (const kind of ERASURE_KINDS) {
    const command = inEnvironment(erase.command(`${kind} <id>`).description(ABOUT[kind]))
      .option('-y, --yes', 'erase without asking; otherwise count first what would be erased')
      .option('--reason <text>', 'for the receipt; never the erased id')
    if (kind === 'user') command.option('--field <path>', 'payload field with the user id, such as customer.id')
    command
      .addHelpText(
        'after',
        `
An erasure cannot be undone. Readers find nothing of it once it is effective; its rows are deleted in the background.

Example:
  tacho erase ${kind} ${kind === 'user' ? 'user-4711 --field customer.id' : `${kind}-81`} --environment acme/production --yes`,
      )
      .action((id: string, options: EraseOptions) => eraseSubject(kind, id, options))
  }

  inEnvironment(erase.command('list').description('list erasures, newest first'))
    .addHelpText('after', '\nExample:\n  tacho erase list --environment acme/production --json')
    .action(list)

  inEnvironment(erase.command('show <erasureId>').description('show an erasure and how far it is'))
    .addHelpText('after', '\nExample:\n  tacho erase show 0197f3a0-0000-7000-8000-000000000000')
    .action(show)
}

async function eraseSubject(kind: ErasureKind, id: string, options: EraseOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const params = { environmentId }
  const subject = { kind, id, ...(options.field !== undefined && { field: options.field.split('.') }) }
  if (!options.yes) {
    const preview = await client.previewErasure({ params, body: subject })
    if (options.json) printJson(preview)
    else {
      printLine(spokenPreview(preview))
      if (preview.runningRuns > 0) printLine(stillRunning(preview.runningRuns, kind))
      if (kind === 'user' && options.field === undefined) printLine(FIRST_USER)
    }
    if (!canAsk(options)) throw wrongUsage('Nothing was erased; add --yes to erase.')
    if (!(await confirmed('Erase this? It cannot be undone.'))) throw wrongUsage('Nothing was erased.')
  }
  const { reason } = options
  const erasure = await client.createErasure({ params, body: { ...subject, ...(reason !== undefined && { reason }) } })
  printErasure(erasure, options)
}

function spokenPreview({ runs, events, more, toSearch }: ErasurePreview): string {
  const countText = `${more ? 'More than ' : ''}${counted(runs, 'run')} with ${counted(events, 'event')} would be erased`
  return toSearch > 0 ? `${countText}, and those found in a search of ${counted(toSearch, 'run')}.` : `${countText}.`
}

async function list(options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  const items = await allItems(client.listErasures, { params: { environmentId } })
  if (options.json) return printJson({ items, hasMore: false })
  printTable(
    [
      { title: 'ID', as: 'whole' },
      { title: 'KIND' },
      { title: 'STATUS', as: 'word' },
      { title: 'RUNS' },
      { title: 'EVENTS' },
      { title: 'EFFECTIVE', as: 'time' },
      { title: 'BY' },
    ],
    items.map(({ id, kind, status, runs, events, effectiveAt, requestedBy }) => [
      id,
      kind,
      status,
      String(runs),
      String(events),
      effectiveAt ?? 'not yet',
      requestedBy.name,
    ]),
    'Nothing was erased. `tacho erase --help` shows how.',
  )
}

async function show(erasureId: string, options: EnvironmentOptions): Promise<void> {
  const { client, environmentId } = await connected(options)
  printErasure(await client.readErasure({ params: { environmentId, erasureId } }), options)
}

const FIRST_USER =
  'A run is found by the first end user that it names: `--field userId` also finds runs that name this one later.'

function printErasure(erasure: Erasure, { json }: EnvironmentOptions): void {
  if (json) return printJson(erasure)
  const { id, kind, field, status, runs, runningRuns, events, eventsDeleted, effectiveAt, searched, toSearch } = erasure
  const erased = `${counted(runs, 'run')}, ${counted(events, 'event')}`
  if (status === 'SEARCHING') {
    printLine(
      `Erasure ${id} (${kind}) is NOT effective yet: ${searched} of ${toSearch} runs searched, ${erased} so far.`,
    )
    printLine(`See: tacho erase show ${id}`)
    return
  }
  printLine(`Erasure ${id} (${kind}) is effective since ${effectiveAt}: ${erased}.`)
  printLine(status === 'DONE' ? 'All rows are deleted.' : `${eventsDeleted} of ${events} events are deleted so far.`)
  if (runningRuns > 0) printLine(stillRunning(runningRuns, kind, true))
  if (kind === 'user' && field === null) printLine(FIRST_USER)
}
