import { BENCHMARKS } from '../src/benchmarks.ts'
import { tryBenchmarks } from './try-benchmark.ts'

tryBenchmarks(BENCHMARKS.filter(({ part }) => part === 'postgres'))
