/** `rename`, `archive` and `restore`: the same for everything that can be put away. */
import type { Command } from 'commander'
import type { OperatorClient } from '../engine/operator-client.ts'
import { asOperator, connect, inEnvironment, type EnvironmentOptions, type ServerOptions } from '../engine/options.ts'
import { printable, printJson, printLine } from '../engine/output.ts'

export interface WorkspaceOptions extends ServerOptions {
  workspace?: string
}

interface PlaceOptions extends WorkspaceOptions, EnvironmentOptions {}

interface Thing<Params> {
  params: Params
  /** The name of the item in messages. */
  name: string
}

type Act<Params> = (client: OperatorClient, given: { params: Params }) => Promise<unknown>

export interface Life<Params> {
  noun: string
  /** A name for the help's examples. */
  example: string
  /** Effect of archiving, and when it is refused. */
  archiving: string
  /** Effect of restoring. */
  restoring: string
  /** The flag for the scope in which names are unique; null: the name contains its scope. */
  within: 'workspace' | 'environment' | null
  /** Finds an item; archived ones too. */
  find(client: OperatorClient, given: string, options: PlaceOptions): Promise<Thing<Params>>
  rename?: (client: OperatorClient, given: { params: Params; body: { name: string } }) => Promise<unknown>
  archive: Act<Params>
  restore: Act<Params>
}

export function addLife<Params>(command: Command, life: Life<Params>): void {
  const { noun, example, archiving, restoring, find, rename, archive, restore } = life
  const of = `${command.name()} `
  const add = (name: string, about: string) => {
    const made = command.command(name).description(about)
    if (life.within === 'environment') return inEnvironment(made)
    const added = asOperator(made)
    return life.within === 'workspace'
      ? added.option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
      : added
  }
  const examples = (line: string) => `\nExample:\n  tacho ${of}${line}`

  if (rename) {
    add(`rename <${noun}> <name>`, `give the ${noun} another name`)
      .addHelpText('after', examples(`rename ${example} other-name`))
      .action(async (storePlace: string, to: string, options: PlaceOptions) => {
        const client = connect(options)
        const { params, name } = await find(client, storePlace, options)
        print(
          await rename(client, { params, body: { name: to } }),
          `${title(name)} is now called ${printable(to)}.`,
          options,
        )
      })
  }
  const change = (verb: 'archive' | 'restore', about: string, act: Act<Params>, done: string) =>
    add(`${verb} <${noun}>`, about)
      .addHelpText('after', examples(`${verb} ${example}`))
      .action(async (storePlace: string, options: PlaceOptions) => {
        const client = connect(options)
        const { params, name } = await find(client, storePlace, options)
        print(await act(client, { params }), `${title(name)} ${done}.`, options)
      })
  change('archive', `put the ${noun} away: ${archiving}`, archive, 'is archived')
  change('restore', `bring an archived ${noun} back: ${restoring}`, restore, 'is in use again')

  function title(name: string): string {
    return `${noun[0]?.toUpperCase()}${noun.slice(1)} ${printable(name)}`
  }
}

function print(reply: unknown, text: string, { json }: PlaceOptions): void {
  if (json) printJson(reply)
  else printLine(text)
}
