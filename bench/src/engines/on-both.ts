/** Benchmarks that run on both engines. */
import type { Benchmark, Setting } from '../benchmark.ts'
import type { Result } from '../result.ts'
import type { Engine } from './engine.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'

export interface EngineBenchmark {
  /** The benchmark's name and title on each engine. */
  sqlite: readonly [name: string, title: string]
  postgres: readonly [name: string, title: string]
  about: string | Record<Engine['name'], string>
  onDemand?: boolean
  measure(setting: Setting, engine: Engine): Promise<Result>
}

export type OnBoth = Record<Engine['name'], Benchmark>

export function onBoth({ about, onDemand = false, measure, ...names }: EngineBenchmark): OnBoth {
  const on = (part: Engine['name'], open: (setting: Setting) => Engine | Promise<Engine>): Benchmark => {
    const [name, title] = names[part]
    const run: Benchmark['run'] = async (setting) => {
      await using engine = await open(setting)
      return await measure(setting, engine)
    }
    return { name, title, part, about: [typeof about === 'string' ? about : about[part]], onDemand, run }
  }
  return { sqlite: on('sqlite', openSqlite), postgres: on('postgres', openPostgres) }
}

/** The same with --full. */
export function inFull({ sqlite, postgres }: OnBoth, about?: string): OnBoth {
  const full = (benchmark: Benchmark): Benchmark => ({
    ...benchmark,
    name: `${benchmark.name}-full`,
    title: `${benchmark.title}, 10 million events stored`,
    about: about === undefined ? benchmark.about : [about],
    onDemand: true,
  })
  return { sqlite: full(sqlite), postgres: full(postgres) }
}
