import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, test } from 'node:test'
import { auditEntry, newHome, newPrompt, promptVersion } from './configuration-sample.ts'
import { sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

export function promptsSuite(open: OpenStorage) {
  describe('prompts', () => {
    const storage = sharedStorage(open)

    test('a prompt has its first version, with the digest and size of its UTF-8', async () => {
      const { workspaceId } = await newHome(storage())
      const content = 'Sei höflich. 🙂\r\n\tEnde'
      const prompt = { id: newId(), workspaceId, name: 'greeting', createdAt: NOON }
      const first = promptVersion(content, { note: 'first' })
      assert.equal(await storage().createPrompt(prompt, first, [auditEntry(workspaceId)]), 'created')
      const found = await storage().findPrompt(workspaceId, prompt.id)
      const info = {
        id: first.id,
        promptId: prompt.id,
        number: 1,
        contentHash: hash('sha256', content),
        contentBytes: Buffer.byteLength(content),
        author: 'ada',
        note: 'first',
        createdAt: NOON,
        importedAt: null,
      }
      assert.deepEqual(found, { ...prompt, archivedAt: null, newest: info })
      assert.deepEqual(await storage().findPromptVersion(workspaceId, prompt.id, 1), { ...info, content })
      assert.equal((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows.length, 1)
    })

    test('a name is unique in its workspace, and needs a workspace', async () => {
      const [one, two] = [await newHome(storage()), await newHome(storage())]
      const create = (workspaceId: string) =>
        storage().createPrompt({ id: newId(), workspaceId, name: 'greeting', createdAt: NOON }, promptVersion('x'), [])
      assert.equal(await create(one.workspaceId), 'created')
      assert.equal(await create(one.workspaceId), 'name_taken')
      assert.equal(await create(two.workspaceId), 'created')
      assert.equal(await create(newId()), 'no_workspace')
    })

    test('versions are numbered in order, also when many are written at once, and never change', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPrompt(storage(), workspaceId, 'one')
      const contents = Array.from({ length: 8 }, (_, index) => `content ${index}`)
      const saved = await Promise.all(
        contents.map((content) => storage().createPromptVersion(workspaceId, id, promptVersion(content), null, [])),
      )
      const numbers = saved.map((each) => each?.version.number ?? 0)
      assert.deepEqual(
        numbers.toSorted((a, b) => a - b),
        [2, 3, 4, 5, 6, 7, 8, 9],
      )
      for (const [index, number] of numbers.entries()) {
        assert.equal((await storage().findPromptVersion(workspaceId, id, number))?.content, contents[index])
      }
      assert.equal((await storage().findPrompt(workspaceId, id))?.newest.number, 9)
      assert.equal((await storage().findPromptVersion(workspaceId, id, 1))?.content, 'one')
    })

    test('content equal to the newest version is not written again, whatever the author and note', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPrompt(storage(), workspaceId, 'one', 'two')
      const again = promptVersion('two', { author: 'bob', note: 'again' })
      const saved = await storage().createPromptVersion(workspaceId, id, again, 1, [auditEntry(workspaceId)])
      assert.deepEqual([saved?.outcome, saved?.version.number, saved?.version.author], ['unchanged', 2, 'ada'])
      assert.deepEqual((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows, [])
      const back = await storage().createPromptVersion(workspaceId, id, promptVersion('one'), 2, [])
      assert.deepEqual([back?.outcome, back?.version.number], ['created', 3])
    })

    test('an author cannot replace a version they have not seen', async () => {
      const { workspaceId } = await newHome(storage())
      const id = await newPrompt(storage(), workspaceId, 'one', 'two')
      const save = (content: string, follows: number | null) =>
        storage().createPromptVersion(workspaceId, id, promptVersion(content), follows, [auditEntry(workspaceId)])
      const refused = await save('three', 1)
      assert.deepEqual([refused?.outcome, refused?.version.number], ['conflict', 2])
      assert.deepEqual((await storage().listAudit(workspaceId, { limit: 9, after: null })).rows, [])
      assert.equal((await save('three', 2))?.outcome, 'created')
      assert.equal((await save('four', null))?.outcome, 'created')
    })

    test('a prompt and its versions are found in their own workspace only', async () => {
      const [one, two] = [await newHome(storage()), await newHome(storage())]
      const id = await newPrompt(storage(), one.workspaceId)
      assert.equal(await storage().findPrompt(two.workspaceId, id), null)
      assert.equal(await storage().findPromptVersion(two.workspaceId, id, 1), null)
      assert.equal(await storage().createPromptVersion(two.workspaceId, id, promptVersion('x'), null, []), null)
      assert.equal(await storage().findPromptVersion(one.workspaceId, id, 2), null)
      assert.equal(await storage().findPrompt(one.workspaceId, newId()), null)
      assert.equal((await storage().findPrompt(one.workspaceId, id))?.newest.number, 1)
      assert.deepEqual((await storage().listPrompts(two.workspaceId, null, { limit: 9, after: null })).rows, [])
    })

    test('prompts are listed by id and by name, versions newest first, page by page', async () => {
      const { workspaceId } = await newHome(storage())
      const ids = []
      for (let count = 0; count < 4; count++) ids.push(await newPrompt(storage(), workspaceId, 'a', 'b', 'c'))
      ids.sort()
      const list = async (after: string | null) =>
        (await storage().listPrompts(workspaceId, null, { limit: 3, after })).rows.map(({ id }) => id)
      assert.deepEqual(await list(null), ids.slice(0, 3))
      assert.deepEqual(await list(ids[2] ?? ''), ids.slice(3))
      const [first = ''] = ids
      const named = (await storage().listPrompts(workspaceId, first, { limit: 3, after: null })).rows
      assert.deepEqual(
        named.map(({ id }) => id),
        [first],
      )
      const versions = async (after: number | null) =>
        (await storage().listPromptVersions(workspaceId, first, { limit: 2, after })).rows.map(({ number }) => number)
      assert.deepEqual(await versions(null), [3, 2])
      assert.deepEqual(await versions(2), [1])
      assert.deepEqual((await storage().listPromptVersions(newId(), first, { limit: 2, after: null })).rows, [])
    })
  })
}
