import assert from 'node:assert/strict'
import { test } from 'node:test'
import { localLinkWarning } from '../src/people/local-link.ts'

test('a link of a server without a public address warns that it opens only on its machine', () => {
  for (const host of ['localhost:4680', '127.0.0.1', '127.9.0.1:80', '[::1]:4680', 'tacho.localhost', '0.0.0.0:4680']) {
    assert.match(localLinkWarning(`http://${host}/invitation#x`) ?? '', /opens only on the server's own machine/, host)
  }
  for (const host of ['tacho.example.com', '10.0.0.7:4680', 'localhost.example.com', '[2001:db8::1]']) {
    assert.equal(localLinkWarning(`https://${host}/invitation#x`), null, host)
  }
})
