/**
 * Compiles the declarations and the code of the pages with old compilers. Needs TACHO_TEST_FRAMEWORKS=1.
 * packages/sdk/test/package.test.ts tests TypeScript 5.6 and the newest.
 */
import path from 'node:path'
import { test } from 'node:test'
import { writeBlocks } from './blocks.ts'
import { packagesOf, startPlace } from './place.ts'

for (const version of ['5.4.5', '5.5.4', '5.9.3']) {
  const { skip, packages } = packagesOf([`typescript@${version}`, '@types/node@20.19.43'])
  test(
    `TypeScript ${version} without skipLibCheck: ESM, CommonJS, a bundler, node10, and the blocks of the pages`,
    { skip },
    async (t) => {
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
      const blocks = writeBlocks(path.join(place.folder, 'blocks'), 'alone').map((file) => `blocks/${file}`)
      await place.run(['tsc', ...strict, '--types', 'node', '--module', 'nodenext', ...blocks])
    },
  )
}
