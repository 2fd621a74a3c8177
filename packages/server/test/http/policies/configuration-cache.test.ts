import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConfigurationCache } from '../../../src/http/policies/configuration-cache.ts'

const ENV = 'environment'

/** A store whose configuration can be changed, and that counts its queries. */
function setUp({ maxBytes = 1_000_000 } = {}) {
  const inForce = new Map<string, string>()
  const asked: (string | null)[] = []
  let hold: Promise<void> | null = null
  let clock = 0
  const cache = createConfigurationCache({
    storage: {
      async readConfiguration(environmentId, knownRevision) {
        asked.push(knownRevision)
        const revision = inForce.get(environmentId) ?? 'empty'
        await hold
        return { revision, text: revision === knownRevision ? null : `text of ${revision}` }
      },
    },
    monotonicNow: () => clock,
    maxBytes,
  })
  return {
    cache,
    asked,
    put: (revision: string, environmentId = ENV) => inForce.set(environmentId, revision),
    heard: (revision: number) => cache.observeRevision(revision, clock),
    pass: (ms: number) => (clock += ms),
    /** Delays the answers of the store until the returned function is called. */
    holdAnswers() {
      const held = Promise.withResolvers<void>()
      hold = held.promise
      return held.resolve
    },
  }
}

test('a configuration is read once while nothing changes', async () => {
  const { cache, asked, heard } = setUp()
  heard(1)
  assert.equal(await cache.tagOf(ENV), 'W/"empty"')
  assert.equal(cache.tagOf(ENV), 'W/"empty"', 'without waiting')
  assert.deepEqual(await cache.read(ENV), { tag: 'W/"empty"', body: Buffer.from('text of empty') })
  heard(1)
  await cache.tagOf(ENV)
  assert.deepEqual(asked, [null])
})

test('a change of the control tables reads the revision again, and the text only if the revision changed', async () => {
  const { cache, asked, heard, put } = setUp()
  heard(1)
  await cache.read(ENV)
  heard(2)
  assert.equal(await cache.tagOf(ENV), 'W/"empty"')
  assert.equal((await cache.read(ENV)).body.toString(), 'text of empty')
  put('b')
  assert.equal(cache.tagOf(ENV), 'W/"empty"', 'not heard of yet')
  heard(3)
  assert.equal(await cache.tagOf(ENV), 'W/"b"')
  assert.equal((await cache.read(ENV)).body.toString(), 'text of b')
  assert.deepEqual(asked, [null, 'empty', 'empty'])
})

test('the publishing node serves the new configuration at once', async () => {
  const { cache, heard, put } = setUp()
  heard(1)
  await cache.tagOf(ENV)
  put('b')
  cache.published(ENV)
  assert.equal(await cache.tagOf(ENV), 'W/"b"')
})

test('an answer older than a publication is returned, but not cached', async () => {
  const { cache, heard, put, holdAnswers } = setUp()
  for (const change of [() => cache.published(ENV), () => heard(2)]) {
    heard(1)
    put('a')
    cache.published(ENV)
    const answer = holdAnswers()
    const old = cache.tagOf(ENV)
    put('b')
    change()
    answer()
    assert.equal(await old, 'W/"a"')
    assert.equal(await cache.tagOf(ENV), 'W/"b"')
  }
})

test('a node without an answer of the store for a second does not use its cache', async () => {
  const { cache, heard, put, pass } = setUp()
  assert.equal(await cache.tagOf(ENV), 'W/"empty"')
  put('b')
  assert.equal(await cache.tagOf(ENV), 'W/"b"', 'never heard')
  heard(1)
  await cache.tagOf(ENV)
  put('c')
  pass(999)
  assert.equal(cache.tagOf(ENV), 'W/"b"')
  pass(1)
  assert.equal(await cache.tagOf(ENV), 'W/"c"')
})

test('concurrent requests share one query to the store', async () => {
  const { cache, asked, holdAnswers } = setUp()
  const answer = holdAnswers()
  const tag = async () => cache.tagOf(ENV)
  const all = [tag(), tag(), cache.read(ENV).then((served) => served.tag)]
  answer()
  assert.deepEqual(new Set(await Promise.all(all)), new Set(['W/"empty"']))
  assert.equal(asked.length, 1)
})

test('texts are cached up to a limit, revisions always, so a matching tag never reads the store', async () => {
  const { cache, asked, heard, put } = setUp({ maxBytes: 20 })
  heard(1)
  for (const name of ['one', 'two', 'three']) {
    put(name, name)
    await cache.read(name)
  }
  assert.equal(cache.tagOf('one'), 'W/"one"')
  assert.equal(asked.length, 3)
  assert.equal((await cache.read('one')).body.toString(), 'text of one')
  assert.equal(asked.length, 4)
  assert.equal((await cache.read('one')).body.toString(), 'text of one')
  assert.equal(asked.length, 4)
})

test('environments never share a text, even if the store has two texts with one revision', async () => {
  const cache = createConfigurationCache({
    storage: {
      async readConfiguration(environmentId, knownRevision) {
        return { revision: 'same', text: knownRevision === 'same' ? null : `text of ${environmentId}` }
      },
    },
    monotonicNow: () => 0,
  })
  for (const round of [1, 2]) {
    cache.observeRevision(round, 0)
    for (const name of ['one', 'two', 'one']) {
      assert.equal(await cache.tagOf(name), 'W/"same"')
      assert.equal((await cache.read(name)).body.toString(), `text of ${name}`)
    }
  }
})

test('after a store failure the next request queries the store again', async () => {
  let fails = true
  const cache = createConfigurationCache({
    storage: {
      async readConfiguration() {
        if (fails) throw new Error('away')
        return { revision: 'a', text: 'text' }
      },
    },
  })
  await assert.rejects(async () => cache.tagOf(ENV))
  fails = false
  assert.equal(await cache.tagOf(ENV), 'W/"a"')
})
