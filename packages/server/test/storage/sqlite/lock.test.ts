import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { StoreRefused } from '../../../src/storage/engine/store.ts'
import { BUILT_THREADS } from '../../setup/built-threads.ts'
import { openStore, temporaryDirectory } from './temporary.ts'

/** Opens the store in another process, which prints the result and then waits to be killed. */
function inAnotherProcess(t: TestContext, directory: string) {
  const program = path.join(import.meta.dirname, 'lock-holder.ts')
  const child = spawn(process.execPath, [...BUILT_THREADS, program, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

async function firstLine(child: ReturnType<typeof inAnotherProcess>): Promise<string> {
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer]
  return chunk.toString().trim()
}

const refusal = (directory: string) => `The store in ${directory} is open in another process. Stop that process first.`

test('a second process is refused with a clear sentence, and the first continues', async (t) => {
  const directory = temporaryDirectory(t)
  const storage = await openStore(t, { directory })
  const other = inAnotherProcess(t, directory)
  assert.equal(await firstLine(other), `StoreRefused ${refusal(directory)}`)
  await storage.createWorkspace({ id: 'w', name: 'w', createdAt: 1 }, [])
})

test('a second opening in the same process is refused too', async (t) => {
  const directory = temporaryDirectory(t)
  await openStore(t, { directory })
  await assert.rejects(openStore(t, { directory }), new StoreRefused(refusal(directory)))
})

test('the lock ends with its process, however that ends', async (t) => {
  const directory = temporaryDirectory(t)
  const other = inAnotherProcess(t, directory)
  assert.equal(await firstLine(other), 'open')
  await assert.rejects(openStore(t, { directory }), new StoreRefused(refusal(directory)))
  other.kill('SIGKILL')
  await once(other, 'exit')
  await (await openStore(t, { directory })).ping()
})

test('a closed store can be opened again', async (t) => {
  const directory = temporaryDirectory(t)
  const first = await openStore(t, { directory })
  await first.createWorkspace({ id: 'w', name: 'w', createdAt: 1 }, [])
  await Promise.all([first.close(), first.close()])
  const second = await openStore(t, { directory })
  assert.equal((await second.findWorkspace('w'))?.name, 'w')
})

test('a path that cannot be opened is refused with a clear sentence', async (t) => {
  const directory = temporaryDirectory(t)
  const file = path.join(directory, 'file')
  writeFileSync(file, '')
  await assert.rejects(openStore(t, { directory: path.join(file, 'data') }), StoreRefused)
  if (process.getuid?.() === 0) return // root can write anywhere
  chmodSync(directory, 0o500)
  await assert.rejects(openStore(t, { directory: path.join(directory, 'data') }), StoreRefused)
})
