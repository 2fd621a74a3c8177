import type { Command } from 'commander'
import { findDatabaseUrl } from '../database-url.ts'
import { readDataDir, withDataDir, type DataDirOptions } from '../data-dir.ts'
import { withJson, type OutputOptions } from '../options.ts'
import { counted, printJson, printLine } from '../output.ts'
import { wrongUsage } from '../stop.ts'
import { storeAct } from '../store-act.ts'

interface Options extends DataDirOptions, OutputOptions {
  databaseUrl?: string
  operatorToken?: true
  apiKeyFor?: string
  revokeOld?: true
}

export function addRecover(program: Command): void {
  withJson(withDataDir(program.command('recover').description('replace a lost operator token or API key')))
    .option('--database-url <url>', 'the store is in this database (TACHO_DATABASE_URL), and its servers may run on')
    .option('--operator-token', 'make a new operator token; what happens when nothing else is asked for')
    .option('--api-key-for <workspace/environment>', 'make a new API key with every scope')
    .option('--revoke-old', 'revoke all operator tokens, or all keys of that environment, that there were')
    .addHelpText(
      'after',
      `
No server may have the data directory open. Whoever can write to it, or to the database, can do this: guard them.

Examples:
  tacho recover --data-dir /var/lib/tacho
  tacho recover --api-key-for default/development --revoke-old --json`,
    )
    .action(recover)
}

async function recover(options: Options): Promise<void> {
  const dataDir = readDataDir(options)
  // A directory that is named is meant, whatever the environment says.
  const databaseUrl = options.dataDir === undefined ? findDatabaseUrl(options.databaseUrl) : null
  const apiKeyFor = options.apiKeyFor === undefined ? undefined : splitNames(options.apiKeyFor)
  const made = await storeAct((offline) =>
    offline.recover({
      dataDir,
      databaseUrl,
      operatorToken: options.operatorToken === true || apiKeyFor === undefined,
      ...(apiKeyFor === undefined ? {} : { apiKeyFor }),
      revokeOld: options.revokeOld === true,
    }),
  )
  if (options.json) return printJson(made)
  const { operatorToken, apiKey, revokedOperatorTokens, revokedApiKeys } = made
  printLine('Keep this, it is not shown again:')
  if (operatorToken !== null) printLine(`  Operator token  ${operatorToken}`)
  if (apiKey !== null) printLine(`  API key         ${apiKey}`)
  if (!options.revokeOld) return
  printLine(`Revoked: ${counted(revokedOperatorTokens, 'operator token')}, ${counted(revokedApiKeys, 'API key')}.`)
}

function splitNames(text: string): { workspace: string; environment: string } {
  const slash = text.indexOf('/')
  if (slash > 0 && slash < text.length - 1) {
    return { workspace: text.slice(0, slash), environment: text.slice(slash + 1) }
  }
  throw wrongUsage(`--api-key-for must be workspace/environment, not ${JSON.stringify(text)}.`)
}
