/** Servers of several kinds. Needs TACHO_TEST_FRAMEWORKS=1. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { packagesOf, startPlace } from './place.ts'
import { outcomeOf, startService } from './service.ts'

const EXPRESS = packagesOf(['express@5.3.0'])
const VITE = packagesOf(['vite@8.3.8'])
const NEST = packagesOf([
  '@nestjs/common@11.2.10',
  '@nestjs/core@11.2.10',
  '@nestjs/platform-express@11.2.10',
  'reflect-metadata@0.2.2',
  'rxjs@7.8.2',
  'typescript@5.6.3',
  '@types/node@20.19.43',
])

const textOf = async (url: string) => (await fetch(url)).text()

test('Express: routes, a streamed answer, and the end by SIGTERM', { skip: EXPRESS.skip }, async (t) => {
  const service = await startService(t)
  const place = await startPlace(t, 'express', EXPRESS.packages)
  const { url, child } = await place.serve(['node', 'main.js'], /(http:\S+)/, service.env)
  assert.equal(await textOf(`${url}/refund`), 'paid 100')
  assert.equal(await textOf(`${url}/stream`), 'firstpaid 1')
  const ended = once(child, 'close')
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
  assert.equal(outcomeOf(service.events('express')), 'COMPLETED')
  const stream = service.events('express stream').map(({ eventType }) => eventType)
  assert.deepEqual(stream, ['TOOL_START', 'TOOL_CALL', 'SESSION_OUTCOME'])
})

test(
  'NestJS: CommonJS with node10, compiled by TypeScript 5.6 without skipLibCheck',
  { skip: NEST.skip },
  async (t) => {
    const service = await startService(t)
    service.block('refund')
    const place = await startPlace(t, 'nest', NEST.packages)
    // NestJS's own declarations need types that it does not depend on.
    const errors = await place
      .run(['tsc', '-p', 'tsconfig.build.json', '--skipLibCheck', 'false'])
      .catch(({ message }: Error) => message)
    assert.doesNotMatch(errors, /tacho|src\//)
    await place.run(['tsc', '-p', 'tsconfig.build.json', '--skipLibCheck'])
    const { url, child } = await place.serve(['node', 'dist/main.js'], /(http:\S+) function/, service.env)
    assert.equal(await textOf(`${url}/refund`), 'ToolBlockedError')
    const ended = once(child, 'close')
    child.kill('SIGTERM')
    await ended
    assert.equal(outcomeOf(service.events('nest')), 'COMPLETED')
  },
)

test('Vite: rendered in development, and built with and without a bundled SDK', { skip: VITE.skip }, async (t) => {
  const service = await startService(t)
  const place = await startPlace(t, 'vite-ssr', VITE.packages)
  assert.equal(await place.run(['node', 'develop.js'], service.env), 'paid 100\n')
  for (const env of [{}, { BUNDLE: '1' }]) {
    await place.run(['vite', 'build', '--ssr', 'entry.js'], env)
    service.block('refund')
    assert.equal(await place.run(['node', 'built.js'], service.env), 'ToolBlockedError\n')
    service.block()
  }
  const outcomes = service.events('vite-ssr').filter(({ eventType }) => eventType === 'SESSION_OUTCOME')
  assert.equal(outcomes.length, 3)
})
