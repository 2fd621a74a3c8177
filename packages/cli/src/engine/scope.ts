/** Flags of commands for one workspace or the whole installation. */
import type { Workspace } from '@tacho/contract/tenants/workspace.ts'
import type { Role } from '@tacho/contract/web/route.ts'
import { InvalidArgumentError, type Command } from 'commander'
import type { OperatorClient } from './operator-client.ts'
import { asOperator, type ServerOptions } from './options.ts'
import { printable } from './output.ts'
import { wrongUsage } from './stop.ts'
import { findWorkspace } from '../tenants/tenants.ts'
import { ROLES } from '@tacho/contract/engine/words.ts'

export interface ScopeOptions extends ServerOptions {
  workspace?: string
  installation?: true
}

export function inScope(command: Command): Command {
  return asOperator(
    command
      .option('-w, --workspace <workspace>', 'name or id; optional if there is only one')
      .option('--installation', 'the whole installation instead of one workspace'),
  )
}

/** The chosen workspace; null means the installation. */
export async function findScope(
  client: OperatorClient,
  { workspace, installation }: ScopeOptions,
): Promise<Workspace | null> {
  if (!installation) return findWorkspace(client, workspace)
  if (workspace !== undefined) throw wrongUsage('Give either --workspace or --installation.')
  return null
}

/** `workspace acme` or `the installation`. */
export function spokenScope(scope: Workspace | null): string {
  return scope === null ? 'the installation' : `workspace ${printable(scope.name)}`
}

/** Parses a role option for commander. */
export function parseRole(text: string): Role {
  const role = ROLES.find((known) => known === text)
  if (role === undefined) throw new InvalidArgumentError(`It must be one of ${ROLES.join(', ')}.`)
  return role
}
