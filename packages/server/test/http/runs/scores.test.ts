import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { BatchResult } from '@tacho/contract/record/event.ts'
import { LIMITS } from '@tacho/contract/engine/limits.ts'
import type { AuditPage } from '@tacho/contract/people/audit.ts'
import type { OperatorRun, OperatorRunPage } from '@tacho/contract/runs/operator-run.ts'
import type { Score, ScoreAgreement, ScoreNames, ScorePage, ScoreSums } from '@tacho/contract/runs/score.ts'
import { event, startService, type Service } from '../../setup/service.ts'

let service: Service
before(async () => {
  service = await startService()
})
after(() => service.close())

async function tenant(name: string) {
  const { workspaceId, environmentId } = await service.newTenant(name)
  const apiKey = await service.newKey({ scopes: ['events:write'], environmentId })
  const home = `/environments/${environmentId}`
  const score = (runId: string, payload: object, given: object = {}) =>
    event({ runId, eventType: 'SCORE', label: 'score', payload, ...given })
  const record = async (...events: object[]): Promise<BatchResult> => (await service.record(events, apiKey)).body
  const tokenOf = async (role: string) => {
    const body = { name: role, role }
    return (await service.operator<{ token: string }>(`/workspaces/${workspaceId}/tokens`, { body })).body.token
  }
  const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
  const read = async <Body>(path: string) => (await service.operator<Body>(`${home}${path}`)).body
  const give = (runId: string, body: object, token?: string) =>
    service.operator<Score>(`${home}/runs/${runId}/scores/give`, { body, ...(token && as(token)) })
  const withdraw = (runId: string, id: string, token?: string) =>
    service.operator<Score>(`${home}/runs/${runId}/scores/${id}/withdraw`, { method: 'POST', ...(token && as(token)) })
  const runs = async (query: string) =>
    (await read<OperatorRunPage>(`/runs?${query}`)).items.map(({ runId }) => runId).join(' ')
  return { workspaceId, environmentId, home, score, record, tokenOf, read, give, withdraw, runs }
}

test('a SCORE event shows with its run, and one that is none is stored with a warning', async () => {
  const { score, record, read } = await tenant('events')
  const comment = `${'😀'.repeat(LIMITS.scoreCommentChars)}beyond`
  const said = { name: 'accuracy', value: 0.25, comment, author: 'judge-1', targetEventId: 'step' }
  const { accepted, warnings } = await record(
    event({ runId: 'r' }),
    score('r', said),
    score('r', { name: 'ok', value: false }),
  )
  assert.deepEqual([accepted, warnings], [3, undefined])
  const { items } = await read<ScorePage>('/runs/r/scores')
  const accuracy = items.find(({ name }) => name === 'accuracy')
  assert.deepEqual(
    [accuracy?.value, accuracy?.author, accuracy?.eventId, accuracy?.comment],
    [0.25, { kind: 'client', id: 'judge-1', name: 'judge-1' }, 'step', '😀'.repeat(LIMITS.scoreCommentChars)],
  )
  assert.equal(items.find(({ name }) => name === 'ok')?.value, false)
  const { scores } = await read<OperatorRun>('/runs/r')
  assert.deepEqual(
    scores.map(({ name, kind, mean, category, count }) => [name, kind, mean, category, count]),
    [
      ['accuracy', 'NUMBER', 0.25, null, 1],
      ['ok', 'BOOLEAN', 0, null, 1],
    ],
  )
  const wrong = [
    {},
    { name: 'x' },
    { value: 1 },
    { name: 'a<b', value: 1 },
    { name: ' outer', value: 1 },
    { name: 'a\u0000b', value: 1 },
    { name: 'x'.repeat(LIMITS.scoreNameChars + 1), value: 1 },
    { name: 'x', value: 1e308 },
    { name: 'x', value: LIMITS.scoreNumberMax + 1 },
    { name: 'x', value: null },
    { name: 'x', value: [1] },
    { name: 'x', value: '' },
    { name: 'x', value: 'x'.repeat(LIMITS.scoreCategoryChars + 1) },
    { name: 'x', value: 1, targetEventId: 5 },
    { name: 'x', value: 1, author: '' },
  ]
  const judged = await record(...wrong.map((payload) => score('r', payload)))
  assert.equal(judged.accepted, wrong.length)
  assert.deepEqual(
    judged.warnings?.map(({ code, index }) => [code, index]),
    wrong.map((_, index) => ['score_not_understood', index]),
  )
  assert.equal((await read<ScorePage>('/runs/r/scores')).items.length, 2)
  assert.deepEqual(
    (await read<ScoreNames>('/score-names')).items.map(({ name }) => name),
    ['accuracy', 'ok'],
  )
})

test('names of Object.prototype are names like others', async () => {
  const { score, record, read, runs } = await tenant('prototype')
  const names = ['__proto__', 'constructor', 'toString']
  await record(event({ runId: 'r' }), ...names.map((name) => score('r', { name, value: 1, author: name })))
  assert.deepEqual(
    (await read<OperatorRun>('/runs/r')).scores.map(({ name }) => name),
    names,
  )
  for (const name of names) assert.equal(await runs(`score=${name}`), 'r')
  assert.equal(await runs('score=hasOwnProperty'), '')
})

test('an operator judges a run and a step, changes it, and the audit log says so without the comment', async () => {
  const { workspaceId, record, give, withdraw, read } = await tenant('operators')
  await record(event({ runId: 'r' }))
  const first = await give('r', { name: 'quality', value: false, comment: 'too long', eventId: 'step' })
  assert.equal(first.status, 200, first.text)
  const second = await give('r', { name: 'quality', value: true, eventId: 'step' })
  assert.deepEqual([second.body.id, second.body.value, second.body.comment], [first.body.id, true, null])
  assert.equal(second.body.author.kind, 'token')
  await give('r', { name: 'quality', value: 'good' })
  assert.equal((await read<ScorePage>('/runs/r/scores')).items.length, 2)
  assert.equal((await withdraw('r', first.body.id)).status, 200)
  assert.equal((await withdraw('r', first.body.id)).status, 404)
  const audit = await service.operator<AuditPage>(`/workspaces/${workspaceId}/audit?targetKind=run`)
  assert.deepEqual(
    audit.body.items.map(({ action }) => action),
    ['run.withdraw_score', 'run.score', 'run.score', 'run.score'],
  )
  assert.ok(!audit.text.includes('too long'))
  for (const [body, status] of [
    [{ name: 'q', value: 1e10 }, 400],
    [{ name: 'q', value: null }, 400],
    [{ name: 'q', value: 'a\u0000b' }, 400],
    [{ name: 'a=b', value: 1 }, 400],
    [{ name: 'q', value: 1, comment: 'x'.repeat(LIMITS.scoreCommentChars + 1) }, 400],
    [{ name: 'q', value: 1, eventId: '' }, 400],
    [{ name: 'q' }, 400],
  ] as const) {
    assert.equal((await give('r', body)).status, status, JSON.stringify(body))
  }
  assert.equal((await give('unknown', { name: 'q', value: 1 })).status, 404)
})

test('a viewer reads, an approver judges and withdraws only their own, an admin any, and nobody those of clients', async () => {
  const { record, score, give, withdraw, tokenOf, read } = await tenant('roles')
  await record(event({ runId: 'r' }), score('r', { name: 'helpful', value: true }))
  const [viewer, approver, admin] = [await tokenOf('viewer'), await tokenOf('approver'), await tokenOf('admin')]
  assert.equal((await give('r', { name: 'q', value: 1 }, viewer)).status, 403)
  const own = await give('r', { name: 'q', value: 1 }, approver)
  const other = await give('r', { name: 'q', value: 0 }, admin)
  assert.equal((await withdraw('r', other.body.id, approver)).status, 409)
  assert.equal((await withdraw('r', own.body.id, approver)).status, 200)
  assert.equal((await give('r', { name: 'q', value: 1 }, approver)).status, 200)
  assert.equal((await withdraw('r', own.body.id, admin)).status, 200)
  const sent = (await read<ScorePage>('/runs/r/scores')).items.find(({ sentAs }) => sentAs !== null)
  assert.equal((await withdraw('r', sent?.id ?? '', admin)).status, 409)
  const stranger = await tenant('strangers')
  assert.equal((await stranger.give('r', { name: 'q', value: 1 })).status, 404)
  assert.equal((await stranger.withdraw('r', own.body.id)).status, 404)
})

test('the list of runs is filtered and sorted by scores, page by page, and the queue has what nobody judged', async () => {
  const { record, score, read, runs, give } = await tenant('lists')
  for (const [index, value] of [0.9, 0.1, 0.5].entries()) {
    const runId = `run-${index}`
    await record(event({ runId, timestamp: Date.now() - 10_000 + index }), score(runId, { name: 'accuracy', value }))
  }
  await record(event({ runId: 'run-3' }))
  assert.equal(await runs('score=accuracy<0.6'), 'run-2 run-1')
  assert.equal(await runs(`score=${encodeURIComponent('accuracy >= 0.5')}&scoreOrder=lowest`), 'run-2 run-0')
  assert.equal(await runs('unscored=accuracy'), 'run-3')
  assert.equal(await runs('unscored=accuracy&share=100'), 'run-3')
  await give('run-3', { name: 'accuracy', value: 0 })
  assert.equal(await runs('unscored=accuracy'), '')
  const walked: string[] = []
  for (let cursor = ''; ;) {
    const page = await read<OperatorRunPage>(
      `/runs?score=accuracy&scoreOrder=highest&limit=1${cursor && `&cursor=${cursor}`}`,
    )
    walked.push(...page.items.map(({ runId }) => runId))
    if (page.nextCursor === null) break
    cursor = page.nextCursor
  }
  assert.deepEqual(walked, ['run-0', 'run-2', 'run-1', 'run-3'])
  const other = await read<OperatorRunPage>('/runs?score=accuracy&scoreOrder=lowest&limit=1')
  const { home } = await tenant('other lists')
  for (const query of ['score=accuracy&scoreOrder=highest', 'score=accuracy', 'score=accuracy<1&scoreOrder=lowest']) {
    const answer = await service.operator(`${home}/runs?${query}&cursor=${other.nextCursor}`)
    assert.equal(answer.status, 400, query)
  }
  for (const query of [
    'score=',
    'score=<5',
    'score=a<',
    'score=a<word',
    'scoreOrder=lowest',
    'share=0',
    'share=101',
    'score=a&scoreOrder=x',
  ]) {
    assert.equal((await service.operator(`${home}/runs?${query}`)).status, 400, query)
  }
})

test('scores are summed up by agent and prompt version in a window', async () => {
  const { record, score, read } = await tenant('sums')
  const promptVersionId = '01900000-0000-7000-8000-0000000000aa'
  await record(
    event({ runId: 'a', agentId: 'one', agentName: 'One', payload: { promptVersionId } }),
    score('a', { name: 'accuracy', value: 1 }),
    score('a', { name: 'tone', value: 'kind' }),
    event({ runId: 'b', agentId: 'two', agentName: 'Two' }),
    score('b', { name: 'accuracy', value: 0 }),
  )
  const at = (offset: number) => encodeURIComponent(new Date(Date.now() + offset).toISOString())
  const sums = async (query = '') =>
    (await read<ScoreSums>(`/score-sums?from=${at(-3_600_000)}&to=${at(0)}${query}`)).items
  assert.deepEqual(await sums(), [
    {
      key: '',
      name: '',
      scores: [
        // Student's t for one degree of freedom: two runs show little.
        { name: 'accuracy', runs: 2, mean: 0.5, meanMargin: 6.3531, categories: [] },
        { name: 'tone', runs: 1, mean: null, meanMargin: null, categories: [{ value: 'kind', runs: 1 }] },
      ],
    },
  ])
  const agents = (await sums('&by=agent')).map(({ name, scores }) => [name, scores.map(({ mean }) => mean)])
  assert.deepEqual(
    agents.toSorted((a, b) => (String(a) < String(b) ? -1 : 1)),
    [
      ['One', [1, null]],
      ['Two', [0]],
    ],
  )
  const versions = await sums('&by=promptVersion')
  assert.deepEqual(
    versions.map(({ key, name, scores }) => [key, name, scores.length]),
    [[promptVersionId, null, 2]],
  )
  assert.deepEqual((await read<ScoreSums>(`/score-sums?from=${at(7_200_000)}&to=${at(7_200_001)}`)).items, [])
})

test('who may judge sees what others judged only after judging the same, unless they ask for it', async () => {
  const { home, record, score, give, withdraw, tokenOf, runs } = await tenant('blind')
  await record(event({ runId: 'r' }), score('r', { name: 'q', value: true, author: 'user-1' }))
  const [anna, ben, viewer] = [await tokenOf('approver'), await tokenOf('admin'), await tokenOf('viewer')]
  const asked = async <Body>(path: string, token: string) =>
    (await service.operator<Body>(`${home}${path}`, { headers: { authorization: `Bearer ${token}` } })).body
  const seen = async (token: string, query = '') => {
    const { items, hidden } = await asked<ScorePage>(`/runs/r/scores${query}`, token)
    const one = (await asked<OperatorRun>(`/runs/r${query}`, token)).scores
    const listed = (await asked<OperatorRunPage>(`/runs${query}`, token)).items[0]?.scores
    assert.deepEqual(listed, one)
    const ofRun = one.map(({ name, mean, category, hidden: of }) => [name, mean, category, of ?? 0])
    return { values: items.map(({ name, value }) => `${name} ${value}`).toSorted(), hidden, ofRun }
  }
  const own = await give('r', { name: 'q', value: false }, anna)
  await give('r', { name: 'q', value: 'odd', eventId: 'step' }, anna)
  await give('r', { name: 'tone', value: 'rude' }, anna)

  const all = { values: ['q false', 'q odd', 'q true', 'tone rude'], hidden: 0 }
  const means = [
    ['q', 0.5, 'odd', 0],
    ['tone', null, 'rude', 0],
  ]
  assert.deepEqual(await seen(anna), { ...all, ofRun: means })
  assert.deepEqual(await seen(viewer), { ...all, ofRun: means })
  assert.deepEqual(await seen(ben, '?blind=false'), { ...all, ofRun: means })
  const none = [
    ['q', null, null, 2],
    ['tone', null, null, 1],
  ]
  assert.deepEqual(await seen(ben), { values: ['q true'], hidden: 3, ofRun: none })
  await give('r', { name: 'q', value: true }, ben)
  assert.deepEqual(await seen(ben), {
    values: ['q false', 'q true', 'q true'],
    hidden: 2,
    ofRun: [
      ['q', null, null, 1],
      ['tone', null, null, 1],
    ],
  })
  // The other scores are hidden again from a person who withdraws their own score.
  await withdraw('r', own.body.id, anna)
  assert.deepEqual((await seen(anna)).values, ['q odd', 'q true', 'tone rude'])
  assert.equal(await runs('unscored=q'), '')
  for (const [token, expected] of [
    [anna, ''],
    [ben, ''],
    [viewer, 'r'],
  ] as const) {
    const { items } = await asked<OperatorRunPage>('/runs?unjudged=q', token)
    assert.equal(items.map(({ runId }) => runId).join(' '), expected)
  }
})

test("two authors' agreement is Cohen's kappa with the runs where they differ, and sums count by author", async () => {
  const { home, record, score, give, read, tokenOf } = await tenant('agreement')
  // 50 applications for a grant, read by two: 20 twice yes, 15 twice no; kappa is 0.4 (Wikipedia, "Cohen's kappa").
  const answers = [
    ...Array<[boolean, boolean]>(20).fill([true, true]),
    ...Array<[boolean, boolean]>(5).fill([true, false]),
    ...Array<[boolean, boolean]>(10).fill([false, true]),
    ...Array<[boolean, boolean]>(15).fill([false, false]),
  ]
  for (const [n, [one, other]] of answers.entries()) {
    const author = (name: string, value: boolean) => score(`grant-${n}`, { name: 'grant', value, author: name })
    await record(event({ runId: `grant-${n}` }), author('a', one), author('b', other))
  }
  const at = (offset: number) => encodeURIComponent(new Date(Date.now() + offset).toISOString())
  const window = () => `from=${at(-3_600_000)}&to=${at(60_000)}`
  const agreement = async () => (await read<ScoreAgreement>(`/score-agreement?name=grant&${window()}`)).items
  const [pair] = await agreement()
  assert.deepEqual([pair?.one.name, pair?.other.name, pair?.both, pair?.same, pair?.kappa], ['a', 'b', 50, 35, 0.4])
  assert.deepEqual([pair?.kappaMargin, pair?.hidden], [0.25404, 0])
  assert.deepEqual(
    pair?.differences.map(({ runId }) => runId).toSorted(),
    Array.from({ length: 15 }, (_, n) => `grant-${n + 20}`).toSorted(),
  )
  const sums = await read<ScoreSums>(`/score-sums?by=author&${window()}`)
  assert.deepEqual(
    sums.items.map(({ key, name, scores: [sum] }) => [key, name, sum?.runs, sum?.mean]),
    [
      ['client a', 'a', 50, 0.5],
      ['client b', 'b', 50, 0.6],
    ],
  )

  const [anna, ben, cora] = [await tokenOf('approver'), await tokenOf('admin'), await tokenOf('approver')]
  await give('grant-0', { name: 'grant', value: false }, anna)
  await give('grant-0', { name: 'grant', value: true }, ben)
  const asked = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const path = `${home}/score-agreement?name=grant&${window()}`
    const { items } = (await service.operator<ScoreAgreement>(path, { headers })).body
    const judges = items.find(({ one, other }) => one.kind === 'token' && other.kind === 'token')
    return [judges?.both, judges?.kappa, judges?.hidden, judges?.differences.length]
  }
  assert.deepEqual(await asked(ben), [1, 0, 0, 1])
  assert.deepEqual(await asked(cora), [1, 0, 1, 0])
  assert.equal(
    (await service.operator(`${home}/score-agreement?name=grant&from=${at(60_000)}&to=${at(0)}`)).status,
    400,
  )
})
