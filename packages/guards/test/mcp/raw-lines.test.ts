/** Ambiguous lines, which two programs could read differently, never pass `tacho mcp-guard` unchanged. */
import assert from 'node:assert/strict'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ended, startTacho } from '../../../cli/test/tacho.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'

const SCRIPTED = fileURLToPath(new URL('scripted-server.ts', import.meta.url))

let server: GuardedServer
before(async () => {
  server = await startGuardedServer()
  await server.deploy({ 'no-deletes': { condition: 'tool.name.startsWith("delete_")', action: 'BLOCK' } })
})
after(() => server.stop())

test('batches are guarded; what can be read in two ways is refused or written again', async () => {
  const variables = { ...server.variables, TACHO_STATE_DIR: path.join(server.directory, 'state') }
  const child = startTacho(['mcp-guard', '--', process.execPath, SCRIPTED], variables)
  const end = ended(child)
  assert.ok(child.stdin && child.stdout)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => String((await lines.next()).value)
  const say = (text: string) => child.stdin?.write(`${text}\n`)
  say('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"n":NaN}}}')
  assert.equal(JSON.parse(await next()).error.code, -32_700)
  say('{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}')
  say('[{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"delete_all"}}]')
  assert.equal(JSON.parse(await next()).result.isError, true)
  say('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":[1]}}')
  assert.equal(JSON.parse(await next()).error.code, -32_602)
  const asked = (id: number, method: string, params: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`
  // Some servers end a line at a carriage return, take the first of two equal keys, or ignore their case.
  const hidden = asked(33, 'tools/call', '{"name":"delete_all"}')
  say(asked(10, 'unheard/of', `{"a":\r${hidden}\r}`))
  assert.deepEqual(JSON.parse(await next()).result.params, { a: JSON.parse(hidden) })
  say(asked(11, 'tools/call', '{"name":"delete_all","name":"line"}'))
  assert.equal(JSON.parse(await next()).result.content[0].text, asked(11, 'tools/call', '{"name":"line"}'))
  const twice = asked(12, 'raw/line', '{"big":9007199254740993,"small":0.10000000000000001}')
  say(twice.replace('"method"', '"method":"tools/call","method"'))
  assert.equal(JSON.parse(await next()).result.content[0].text, twice.replace('0.10000000000000001', '0.1'))
  for (const text of ['"Method":"tools/call"', '"param\u017f":{"name":"delete_all"}']) {
    say(asked(12, 'ping', '{}').replace('"jsonrpc"', `${text},"jsonrpc"`))
    assert.match(JSON.parse(await next()).error.message, /must be written (method|params)\./)
  }
  say(asked(13, 'tools/call', '{"Name":"delete_all","name":"echo"}'))
  assert.match(JSON.parse(await next()).error.message, /The key "Name" must be written name\./)
  // The policy would see another number than the server.
  for (const number of ['9007199254740993', '1e400', '0.1000000000000000000001']) {
    say(asked(14, 'tools/call', `{"name":"echo","arguments":{"of":[1,{"id":${number}}]}}`))
    const { result } = JSON.parse(await next())
    assert.equal(result.isError, true)
    assert.match(result.content[0].text, /^params\.arguments\.of\[1\]\.id has too many digits/)
  }
  say('{"jsonrpc" : "2.0", "id":9007199254740991, "method":"unheard/of", "params":{"big":1.0}}')
  assert.deepEqual(JSON.parse(await next()).result, { method: 'unheard/of', params: { big: 1 } })
  say('{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{"x":1}}')
  assert.equal(await next(), '{"jsonrpc":"2.0","method":"notifications/heard","params":{"x":1}}')
  say(`{"jsonrpc":"2.0","id":3,"method":"ping","params":{"text":"${'x'.repeat(21 * 1_048_576)}"}}`)
  assert.equal(JSON.parse(await next()).error.code, -32_600)
  // The client could take the first of two equal keys, or read another character.
  const answering = (id: number, line: string) =>
    say(asked(id, 'tools/call', JSON.stringify({ name: 'say', arguments: { line } })))
  answering(20, '{"jsonrpc":"2.0","id":1,"id":20,"result":{"a":1,"a":9007199254740993}}')
  assert.equal(await next(), '{"jsonrpc":"2.0","id":20,"result":{"a":9007199254740993}}')
  answering(21, '{"jsonrpc":"2.0","id":21,"result":{"text":"\u00ff"}}')
  assert.match(JSON.parse(await next()).error.message, /is not JSON-RPC in UTF-8/)
  answering(22, '{"jsonrpc":"2.0","id":22,"Result":{},"result":{}}\n{"jsonrpc":"2.0","id":22,"result":{"kept":1}}')
  assert.deepEqual(JSON.parse(await next()).result, { kept: 1 })
  // A client may read two such ids as one. The guard would then not see that an answer is a list of tools.
  for (const id of ['9007199254740993', '1e400', 'null', '[1]']) {
    say(`{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`)
    const refused = await next()
    assert.ok(refused.includes(`"id":${id},"error"`), refused)
    assert.match(refused, /The id must be a text, or a number/)
  }
  say(asked(9007199254740991, 'tools/list', '{}'))
  assert.ok(!(await next()).includes('delete_all'))
  say('{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"exit"}}')
  const { code, stderr } = await end
  assert.equal(code, 7, 'the exit code of the server')
  assert.match(stderr, /without an id was not forwarded/)
  assert.doesNotMatch(stderr, /called echo/)
})
