import type { Command } from 'commander'
import { findPlace } from '../tenants/tenants.ts'
import { connect, withJson, type OutputOptions } from '../engine/options.ts'
import { chosenProfile, knownProfiles, readProfiles, writeProfiles } from '../engine/profiles.ts'
import { wrongUsage } from '../engine/stop.ts'
import { printable, printJson, printLine } from '../engine/output.ts'

interface Options extends OutputOptions {
  profile?: string
}

export function addUse(command: Command): void {
  withJson(command)
    .option('--profile <name>', 'the profile to use from now on')
    .addHelpText(
      'after',
      `
Commands use this environment and its workspace where they name none. TACHO_ENVIRONMENT and --environment win.
Without an argument, it shows what is in use.

Examples:
  tacho use acme/production
  tacho use --profile work
  tacho use`,
    )
    .action(use)
}

async function use(environment: string | undefined, options: Options): Promise<void> {
  if (options.profile !== undefined) changeProfile(options.profile)
  const chosen = chosenProfile()
  if (chosen === null) throw wrongUsage('There is no profile yet: run `tacho login`.')
  const { name, profile } = chosen
  if (environment !== undefined) {
    const url = { url: profile.url }
    const place = await findPlace(connect(url), environment, '--environment')
    const { id } = place.environment
    profile.environment = { id, name: place.name, workspaceId: place.workspace.id }
    const profiles = readProfiles()
    profiles.byName.set(name, profile)
    writeProfiles(profiles)
  }
  const inUse = { profile: name, url: profile.url, environment: profile.environment?.name ?? null }
  if (options.json) return printJson(inUse)
  printLine(`Profile ${printable(name)}: ${profile.url}`)
  if (inUse.environment !== null) printLine(`  environment ${printable(inUse.environment)}`)
}

function changeProfile(name: string): void {
  const profiles = readProfiles()
  if (!profiles.byName.has(name))
    throw wrongUsage(`No profile ${JSON.stringify(name)}: ${knownProfiles(profiles.byName)}.`)
  writeProfiles({ ...profiles, current: name })
}
