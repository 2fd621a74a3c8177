/** Next.js 16 with cacheComponents. Needs TACHO_TEST_FRAMEWORKS=1. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { ADDRESS, isEnded, NEXT_16, textOf } from './next.ts'
import { startPlace } from './place.ts'
import { outcomeOf, startService } from './service.ts'

for (const build of ['--turbopack', '--webpack']) {
  test(`Next.js 16 with cacheComponents, built with ${build}`, { skip: NEXT_16.skip }, async (t: TestContext) => {
    const service = await startService(t)
    const place = await startPlace(t, 'next-cache-components', NEXT_16.packages)
    await place.run(['next', 'build', build], service.env)
    assert.equal(outcomeOf(await service.until('prerendered', isEnded)), 'COMPLETED')
    const { url } = await place.serve(['next', 'start', '-p', '0'], ADDRESS, service.env)
    assert.match(await textOf(url), /<p>Hello<\/p>/)
    assert.match(await textOf(`${url}/later`), /Later/)
    assert.equal(outcomeOf(await service.until('later', isEnded)), 'COMPLETED')
  })
}
