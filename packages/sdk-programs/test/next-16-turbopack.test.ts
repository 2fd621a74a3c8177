/** Next.js 16 with the packed SDK, built by Turbopack. Needs TACHO_TEST_FRAMEWORKS=1. */
import { NEXT_16, testNext } from './next.ts'

testNext({ title: 'Next.js 16, built by Turbopack', ...NEXT_16, build: ['next', 'build', '--turbopack'], major: '16' })
