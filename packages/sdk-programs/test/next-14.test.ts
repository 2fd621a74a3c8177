/** Next.js 14 with the packed SDK. Needs TACHO_TEST_FRAMEWORKS=1. */
import { testNext } from './next.ts'
import { packagesOf } from './place.ts'

const NEXT_14 = packagesOf([
  'next@14.2.35',
  'react@18.3.1',
  'react-dom@18.3.1',
  'typescript@5.4.5',
  '@types/node@20.19.43',
  '@types/react@18.3.8',
])

testNext({ title: 'Next.js 14', ...NEXT_14, build: ['next', 'build'], major: '14' })
