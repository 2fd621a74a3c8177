/** Scores of runs: docs/decisions/0006-runs.md. */
import assert from 'node:assert/strict'
import { RELEASE, type Rule } from '../rule.ts'
import type { ScriptedService, SentEvent } from '../scripted-service.ts'

const sent = (service: ScriptedService): SentEvent[] =>
  service.requests('events').flatMap(({ json }) => json as SentEvent[])
const scoreFields = ({ eventType, payload }: SentEvent) => {
  const { release: _, ...score } = payload as Record<string, unknown>
  return [eventType, score]
}

export const scoreRules: Rule[] = [
  {
    id: 'scores/event',
    title: 'A score is a SCORE event of its run, with name, value, comment, step and author',
    async run({ service, record, score, flush }) {
      const step = await record()
      const id = await score({ name: 'helpful', value: true, comment: 'thanks', eventId: step, author: 'user-1' })
      await score({ name: 'accuracy', value: 0.25 })
      await score({ name: 'tone', value: 'kind' })
      await flush()
      const [first, ...scores] = sent(service)
      assert.deepEqual(scores.map(scoreFields), [
        ['SCORE', { name: 'helpful', value: true, comment: 'thanks', targetEventId: step, author: 'user-1' }],
        ['SCORE', { name: 'accuracy', value: 0.25 }],
        ['SCORE', { name: 'tone', value: 'kind' }],
      ])
      assert.equal(scores[0]?.eventId, id)
      assert.equal((scores[0]?.payload as { release?: string } | undefined)?.release, RELEASE)
      assert.deepEqual(new Set(scores.map(({ runId }) => runId)), new Set([first?.runId]))
    },
  },
  {
    id: 'scores/late',
    title: 'A score of a run in another process names the run, and has no number that anybody would miss',
    async run({ service, score, flush }) {
      const scoreSent = { runId: 'a run elsewhere', name: 'helpful', value: false, id: 'click-1', agentName: 'bot' }
      assert.equal(await score(scoreSent), 'click-1')
      await score({ runId: 'a run elsewhere', name: 'helpful', value: true })
      await flush()
      const events = sent(service)
      assert.deepEqual(
        events.map(({ runId, n }) => [runId, n]),
        [
          ['a run elsewhere', undefined],
          ['a run elsewhere', undefined],
        ],
      )
      assert.deepEqual([events[0]?.eventId, events[0]?.['agentName']], ['click-1', 'bot'])
    },
  },
  {
    id: 'scores/none',
    title: 'What is no score is not sent',
    async run({ service, record, score, flush }) {
      for (const wrong of [
        { name: '', value: 1 },
        { name: 'a<b', value: 1 },
        { name: 'x', value: 1e10 },
        { name: 'x', value: '' },
      ]) {
        assert.equal(await score(wrong), null, JSON.stringify(wrong))
      }
      assert.equal(await score({ name: 'x', value: { nested: 1 } }), null)
      await record()
      await flush()
      assert.equal(sent(service).length, 1)
    },
  },
]
