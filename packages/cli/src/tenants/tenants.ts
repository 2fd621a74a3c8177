/** Finds workspaces and environments by name or id. */
import { allItems } from '@tacho/client/items.ts'
import type { Environment, Workspace } from '@tacho/contract/tenants/workspace.ts'
import { DEMO_ENVIRONMENT } from '@tacho/contract/engine/words.ts'
import type { OperatorClient } from '../engine/operator-client.ts'
import { wrongUsage, type Stop } from '../engine/stop.ts'

export interface Tenant {
  /** Environment id. */
  id: string
  /** `workspace/environment`, or the id if only that is known. */
  name: string
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** `archived`: archived ones too. */
export function allWorkspaces(client: OperatorClient, archived = false): Promise<Workspace[]> {
  const query = archived ? ({ archived: 'true' } as const) : {}
  return allItems(client.listWorkspaces, { query })
}

export function environmentsOf(client: OperatorClient, workspace: Workspace, archived = false): Promise<Environment[]> {
  const query = archived ? ({ archived: 'true' } as const) : {}
  return allItems(client.listEnvironments, { params: { workspaceId: workspace.id }, query })
}

/** A workspace by name or id; without one, the default or the only one. */
export async function findWorkspace(
  client: OperatorClient,
  given: string | undefined = client.defaults.workspace,
  archived = false,
): Promise<Workspace> {
  const workspaces = await allWorkspaces(client, archived)
  const found = workspaces.filter(
    ({ id, name }) => given === undefined || name === given || id === given?.toLowerCase(),
  )
  if (found.length === 1 && found[0]) return found[0]
  if (given !== undefined && found.length > 1)
    throw severalMatch(
      'workspace',
      given,
      found.map(({ id }) => id),
    )
  throw wrongUsage(
    choose(
      'workspace',
      '--workspace',
      given,
      workspaces.map(({ name }) => name),
    ),
  )
}

/** An environment by `workspace/environment`, its own name if no other has it, or id; without one, the default or the only one. */
export async function findEnvironment(
  client: OperatorClient,
  given: string | undefined = client.defaults.environment,
): Promise<Tenant> {
  if (given !== undefined && UUID.test(given)) return { id: given, name: given }
  const { environment, name } = await findPlace(client, given, '--environment')
  return { id: environment.id, name }
}

/** An environment with its workspace. */
export interface Place {
  workspace: Workspace
  environment: Environment
  /** `workspace/environment`. */
  name: string
}

/** The same for commands that also need the workspace. `flag` is used in the error. */
export async function findPlace(
  client: OperatorClient,
  named: string | undefined,
  flag: string,
  archived = false,
): Promise<Place> {
  const given = named ?? (flag === '--environment' ? client.defaults.environment : undefined)
  const places = await allPlaces(client, given, archived)
  const isMeant = ({ environment, name }: Place) =>
    given === undefined || name === given || environment.id === given.toLowerCase()
  let found = places.filter(isMeant)
  // `staging`, if one workspace has it.
  if (found.length === 0) found = places.filter(({ environment }) => environment.name === given)
  if (given === undefined && found.length > 1)
    found = found.filter(({ environment }) => environment.name !== DEMO_ENVIRONMENT)
  // An archived one keeps its name, and operators still read it.
  if (found.length === 0 && given !== undefined && !archived) {
    found = (await allPlaces(client, given, true)).filter(isMeant)
  }
  if (found.length === 1 && found[0]) return found[0]
  if (given !== undefined && found.length > 1)
    throw found[0]?.name === given
      ? severalMatch(
          'environment',
          given,
          found.map(({ environment }) => environment.id),
        )
      : severalMatch(
          'environment',
          given,
          found.map(({ name }) => JSON.stringify(name)),
          'the whole name',
        )
  throw wrongUsage(
    choose(
      'environment',
      flag,
      given,
      places.map(({ name }) => name),
    ),
  )
}

/** Those that `given` can mean. */
async function allPlaces(client: OperatorClient, given: string | undefined, archived: boolean): Promise<Place[]> {
  const places: Place[] = []
  for (const workspace of await allWorkspaces(client, archived)) {
    if (given?.includes('/') === true && !given.startsWith(`${workspace.name}/`)) continue
    for (const environment of await environmentsOf(client, workspace, archived)) {
      places.push({ workspace, environment, name: `${workspace.name}/${environment.name}` })
    }
  }
  return places
}

const MOST_NAMED = 10

/** A name that means two tenants never chooses one. */
function severalMatch(noun: string, given: string, choices: string[], what = 'an id'): Stop {
  const shown = choices.slice(0, MOST_NAMED).join(', ')
  return wrongUsage(`${JSON.stringify(given)} means more than one ${noun}. Use ${what}: ${shown}.`)
}

function choose(noun: string, flag: string, given: string | undefined, names: string[]): string {
  const shown = names.slice(0, MOST_NAMED).map((name) => JSON.stringify(name))
  const known =
    names.length > MOST_NAMED ? `${shown.join(', ')} and ${names.length - MOST_NAMED} more` : shown.join(', ')
  const hint = names.length === 0 ? `\`tacho ${noun}s list\` shows all` : `choose from ${known}`
  if (given !== undefined) return `Unknown ${noun} ${JSON.stringify(given)}: ${hint}.`
  return names.length === 0
    ? `No ${noun} exists yet: create one with \`tacho ${noun}s create\`.`
    : `More than one ${noun} exists. Set ${flag}: ${hint}.`
}
