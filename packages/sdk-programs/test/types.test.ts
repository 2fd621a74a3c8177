/** The declarations in old compilers. Needs TACHO_TEST_FRAMEWORKS=1; packages/sdk/test/package.test.ts tries TypeScript 5.6 and newest. */
import { test } from 'node:test'
import { packagesOf, startPlace } from './place.ts'

for (const version of ['5.4.5', '5.5.4', '5.9.3']) {
  const { skip, packages } = packagesOf([`typescript@${version}`, '@types/node@20.19.43'])
  test(`TypeScript ${version} without skipLibCheck: ESM, CommonJS, a bundler and node10`, { skip }, async (t) => {
    const place = await startPlace(t, 'types', packages)
    const strict = [
      '--noEmit',
      '--strict',
      '--exactOptionalPropertyTypes',
      '--skipLibCheck',
      'false',
      '--target',
      'es2022',
    ]
    const ways = [
      ['--module', 'nodenext'],
      ['--module', 'preserve', '--moduleResolution', 'bundler'],
      ['--module', 'commonjs', '--moduleResolution', 'node10'],
    ]
    for (const way of ways) await place.run(['tsc', ...strict, '--types', 'node', ...way, 'main.ts', 'old.cts'])
  })
}
