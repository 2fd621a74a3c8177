import { BENCHMARKS } from '../src/benchmarks.ts'
import { tryBenchmarks } from './try-benchmark.ts'

/** These only start servers on their stores, as others here do. All else is tried on SQLite. */
const LIKE_OTHERS = ['postgres-mixed', 'postgres-searched', 'postgres-stored', 'postgres-erasure']

tryBenchmarks(BENCHMARKS.filter(({ name, part }) => part === 'postgres' && !LIKE_OTHERS.includes(name)))
