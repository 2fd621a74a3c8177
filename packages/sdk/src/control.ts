/** Loaded on first use, so that a client that only records stays small. */
import { whole } from '#whole'
import type { ConfigurationOptions } from './configuration/configuration.ts'
import { ConfigurationSource } from './configuration/source.ts'
import type { Core } from './core.ts'
import { noteUnknown } from './delivery/diagnostics.ts'
import { Guard } from './guard/guard.ts'
import { RULES, type GuardDefaults } from './guard/rules.ts'
import { createHashInput, SEAL_KEY } from './guard/seal.ts'
import { IssueRecords } from './delivery/issue-records.ts'

const CONFIGURATION = ['refreshMs', 'oldAfterMs', 'cacheFile', 'cacheMaxAgeMs', 'cacheFreshMs']

export interface ControlOptions {
  readonly configuration: ConfigurationOptions
  readonly guard: GuardDefaults
}

export interface Control {
  readonly configuration: ConfigurationSource
  readonly issues: IssueRecords
  /** Loads the policy engine on the first call. */
  guard(): Promise<Guard>
  close(): void
}

export function createControl(
  core: Core,
  { configuration, guard }: ControlOptions,
  issues: IssueRecords = new IssueRecords(core),
): Control {
  // In a replay, do not use the cache file: the tape's policies would replace those of real runs.
  const cacheFile = core.settings.replay ? undefined : configuration.cacheFile
  for (const [of, given, names] of [
    ['configuration', configuration, CONFIGURATION],
    ['guard', guard, [...RULES, 'loop', 'budget', 'labels']],
    ['guard.loop', guard.loop || {}, ['calls', 'window', 'action']],
    ['guard.budget', guard.budget ?? {}, ['toolCalls', 'totalTokens', 'cost', 'seconds', 'action']],
  ] as const) {
    noteUnknown(core.diagnostics, of, given, names)
  }
  const warn = (message: string) => core.diagnostics.report('warning', 'configuration_not_kept', message)
  // Trust the cache file only if it is unchanged and belongs to this key and address.
  const sign = (text: string) => core.sign(`${core.settings.baseUrl}\n${text}`)
  const cache = cacheFile === undefined ? undefined : whole?.createDiskCache(cacheFile, sign, warn)
  if (cacheFile !== undefined && !cache) warn('configuration.cacheFile has no effect: there are no files here.')
  const source = new ConfigurationSource(core, configuration, cache)
  let loading: Promise<Guard> | undefined
  return {
    configuration: source,
    issues,
    guard: () =>
      (loading ??= Promise.all([
        import('./policies.ts'),
        core.sign(SEAL_KEY).catch(() => undefined),
        // Load the masks too, because a hash shows what they change.
        core.writing().isChecked,
        core.carrying?.usages.load(),
      ]).then(
        ([engine, sealKey]) => {
          const hashInput = (core.hashInput = createHashInput(core, engine, sealKey))
          return new Guard({ core, configuration: source, issues, engine, hashInput, defaults: guard })
        },
        (error: unknown) => {
          loading = undefined
          throw error
        },
      )),
    close() {
      source.close()
      issues.sender.close()
    },
  }
}
