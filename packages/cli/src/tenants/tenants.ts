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

/** @param archived whether to include archived ones. */
export function allWorkspaces(client: OperatorClient, archived = false): Promise<Workspace[]> {
  const query = archived ? ({ archived: 'true' } as const) : {}
  return allItems(client.listWorkspaces, { query })
}

export function environmentsOf(client: OperatorClient, workspace: Workspace, archived = false): Promise<Environment[]> {
  const query = archived ? ({ archived: 'true' } as const) : {}
  return allItems(client.listEnvironments, { params: { workspaceId: workspace.id }, query })
}

/** A workspace by name or id. Without either, the default one, or the only one. */
export async function findWorkspace(
  client: OperatorClient,
  workspaceName: string | undefined = client.defaults.workspace,
  archived = false,
): Promise<Workspace> {
  const workspaces = await allWorkspaces(client, archived)
  const namedWorkspaces = workspaces.filter(
    ({ id, name }) => workspaceName === undefined || name === workspaceName || id === workspaceName?.toLowerCase(),
  )
  if (namedWorkspaces.length === 1 && namedWorkspaces[0]) return namedWorkspaces[0]
  if (workspaceName !== undefined && namedWorkspaces.length > 1)
    throw severalMatch(
      'workspace',
      workspaceName,
      namedWorkspaces.map(({ id }) => id),
    )
  throw wrongUsage(
    choose(
      'workspace',
      '--workspace',
      workspaceName,
      workspaces.map(({ name }) => name),
    ),
  )
}

/**
 * An environment by id, by `workspace/environment`, or by its own name if that is unique. Without any, the default one
 * or the only one.
 */
export async function findEnvironment(
  client: OperatorClient,
  environmentName: string | undefined = client.defaults.environment,
): Promise<Tenant> {
  if (environmentName !== undefined && UUID.test(environmentName)) return { id: environmentName, name: environmentName }
  const { environment, name } = await findPlace(client, environmentName, '--environment')
  return { id: environment.id, name }
}

/** An environment with its workspace. */
export interface Place {
  workspace: Workspace
  environment: Environment
  /** `workspace/environment`. */
  name: string
}

/** The same for commands that also need the workspace. Errors mention `flag`. */
export async function findPlace(
  client: OperatorClient,
  named: string | undefined,
  flag: string,
  archived = false,
): Promise<Place> {
  const environmentName = named ?? (flag === '--environment' ? client.defaults.environment : undefined)
  const places = await allPlaces(client, environmentName, archived)
  const isMeant = ({ environment, name }: Place) =>
    environmentName === undefined || name === environmentName || environment.id === environmentName.toLowerCase()
  let matchingPlaces = places.filter(isMeant)
  // A name without a workspace, for example `staging`.
  if (matchingPlaces.length === 0)
    matchingPlaces = places.filter(({ environment }) => environment.name === environmentName)
  if (environmentName === undefined && matchingPlaces.length > 1)
    matchingPlaces = matchingPlaces.filter(({ environment }) => environment.name !== DEMO_ENVIRONMENT)
  // An archived environment keeps its name, and operators can still read it.
  if (matchingPlaces.length === 0 && environmentName !== undefined && !archived) {
    matchingPlaces = (await allPlaces(client, environmentName, true)).filter(isMeant)
  }
  if (matchingPlaces.length === 1 && matchingPlaces[0]) return matchingPlaces[0]
  if (environmentName !== undefined && matchingPlaces.length > 1)
    throw matchingPlaces[0]?.name === environmentName
      ? severalMatch(
          'environment',
          environmentName,
          matchingPlaces.map(({ environment }) => environment.id),
        )
      : severalMatch(
          'environment',
          environmentName,
          matchingPlaces.map(({ name }) => JSON.stringify(name)),
          'the whole name',
        )
  throw wrongUsage(
    choose(
      'environment',
      flag,
      environmentName,
      places.map(({ name }) => name),
    ),
  )
}

/** Environments that the given name may mean, with their workspaces. */
async function allPlaces(
  client: OperatorClient,
  workspaceName: string | undefined,
  archived: boolean,
): Promise<Place[]> {
  const places: Place[] = []
  for (const workspace of await allWorkspaces(client, archived)) {
    if (workspaceName?.includes('/') === true && !workspaceName.startsWith(`${workspace.name}/`)) continue
    for (const environment of await environmentsOf(client, workspace, archived)) {
      places.push({ workspace, environment, name: `${workspace.name}/${environment.name}` })
    }
  }
  return places
}

const MOST_NAMED = 10

/** The error for a name that several items have. It never chooses one. */
function severalMatch(noun: string, soughtName: string, choices: string[], what = 'an id'): Stop {
  const shown = choices.slice(0, MOST_NAMED).join(', ')
  return wrongUsage(`${JSON.stringify(soughtName)} means more than one ${noun}. Use ${what}: ${shown}.`)
}

function choose(noun: string, flag: string, soughtName: string | undefined, names: string[]): string {
  const shown = names.slice(0, MOST_NAMED).map((name) => JSON.stringify(name))
  const known =
    names.length > MOST_NAMED ? `${shown.join(', ')} and ${names.length - MOST_NAMED} more` : shown.join(', ')
  const hint = names.length === 0 ? `\`tacho ${noun}s list\` shows all` : `choose from ${known}`
  if (soughtName !== undefined) return `Unknown ${noun} ${JSON.stringify(soughtName)}: ${hint}.`
  return names.length === 0
    ? `No ${noun} exists yet: create one with \`tacho ${noun}s create\`.`
    : `More than one ${noun} exists. Set ${flag}: ${hint}.`
}
