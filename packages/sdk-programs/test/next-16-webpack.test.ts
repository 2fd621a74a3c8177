/** Next.js 16 with the packed SDK, built by webpack. Needs TACHO_TEST_FRAMEWORKS=1. */
import { NEXT_16, testEdgeInDevelopment, testNext } from './next.ts'

testNext({ title: 'Next.js 16, built by webpack', ...NEXT_16, build: ['next', 'build', '--webpack'], major: '16' })

testEdgeInDevelopment('--webpack')
testEdgeInDevelopment('--turbopack')
