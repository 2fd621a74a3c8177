import { readConfig, settingTexts, type SettingText } from '@tacho/server/config/config.ts'
import { Option, type Command } from 'commander'
import { wrongUsage } from '../engine/stop.ts'

export function addServe(serve: Command): void {
  const settings = settingTexts()
  for (const setting of settings) if (setting.flag !== null) serve.addOption(toOption(setting.flag, setting))
  serve.addOption(new Option('--no-console', 'the same as --console off'))
  serve.addOption(new Option('--check', 'only check the options and variables, without a start'))
  const secrets = settings.filter(({ flag }) => flag === null).map(({ variable, help }) => `  ${variable}  ${help}`)
  serve
    .addHelpText(
      'after',
      `
Every flag has a variable: --data-dir is TACHO_DATA_DIR. Secrets have only a variable, or a file named by TACHO_…_FILE:
${secrets.join('\n')}

Examples:
  tacho serve
  tacho serve --port 8080 --data-dir /var/lib/tacho
  TACHO_DATABASE_URL=postgres://tacho:…@db/tacho tacho serve --workers 4
  TACHO_INIT_WORKSPACE=acme tacho serve --host 0.0.0.0`,
    )
    .action(start)
}

function toOption(flag: string, { help, byDefault }: SettingText): Option {
  // Commander treats the bar in `<on|off>` as the end of the flag.
  return new Option(flag.replaceAll('|', '/'), byDefault === null ? help : `${help} (default ${byDefault})`)
}

type Flags = Readonly<Record<string, string | undefined>>

/** The default log level. On a terminal, it shows warnings only. */
export function firstLogLevel(isTerminal: boolean, variables: NodeJS.ProcessEnv): string | undefined {
  return isTerminal && variables['TACHO_LOG_LEVEL'] === undefined ? 'warn' : undefined
}

/** Commander passes false for a negated flag. */
type Given = Omit<Flags, 'console' | 'check'> & { console?: string | false; check?: true }

async function start({ console, check, ...flags }: Given): Promise<void> {
  const serveOptions = {
    logLevel: firstLogLevel(process.stderr.isTTY, process.env),
    ...flags,
    console: console === false ? 'off' : console,
  } as Flags
  const read = readConfig(serveOptions, process.env)
  if (!read.ok) throw wrongUsage(read.faults.join(' '))
  if (check) return
  // Loaded here, so that other commands do not wait for it.
  const { serve } = await import('@tacho/server/process/serve.ts')
  await serve(read.config)
}
