import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { IssueWhole } from '../../../../src/storage/issues/issues.ts'
import { change, issueOf, issueRecord, listAll, newRecordId, reviewed } from './issue-sample.ts'
import { decidedHere, sharedStorage, type OpenStorage } from '../open.ts'
import { newId, NOON } from '../sample.ts'

const TYPES = 5

/** The possible steps. Numbers choose among what exists at that step. */
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      records: fc.array(
        fc.record({
          type: fc.nat(TYPES - 1),
          recovery: fc.boolean(),
          run: fc.option(fc.nat(4)),
          agent: fc.nat(2),
          time: fc.nat(50),
        }),
        { minLength: 1, maxLength: 5 },
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge' as const), from: fc.nat(), into: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('split' as const), from: fc.nat(), groups: fc.nat(7) }) },
)

interface Reported {
  fingerprint: string
  recovery: boolean
  run: string | null
  agent: string
  time: number
}

export function issuePropertySuite(open: OpenStorage) {
  describe('whatever happens to issues', () => {
    const storage = sharedStorage(open)

    test(
      'their numbers are those of their records, each record counts once, and later ones follow',
      decidedHere(open),
      async () => {
        await fc.assert(
          fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
            const environmentId = newId()
            const reported: Reported[] = []
            for (const one of steps) {
              const issues = await listAll(storage(), environmentId)
              const pick = (number: number) => issues[number % issues.length]?.id ?? ''
              if (one.do === 'report') {
                const records = one.records.map(({ type, recovery, run, agent, time }) => {
                  const runId = run === null ? null : `run ${run}`
                  const recordKind = recovery ? ('RECOVERY' as const) : ('DETECTION' as const)
                  const given = { detectionType: `T${type}`, recordKind, runId, agentId: `agent ${agent}` }
                  return issueRecord(environmentId, { ...given, detectedAt: NOON + time })
                })
                await reviewed(storage(), ...records)
                for (const { id, recordKind, runId: run, agentId: agent, detectedAt: time } of records) {
                  const { fingerprint } = (await storage().findIssueRecord(environmentId, id)) ?? {}
                  assert.ok(fingerprint)
                  reported.push({ fingerprint, recovery: recordKind === 'RECOVERY', run, agent, time })
                }
              } else if (issues.length > 0 && one.do === 'merge') {
                await storage().mergeIssues({ environmentId, id: pick(one.from) }, pick(one.into), change(), [])
              } else if (issues.length > 0 && one.do === 'split') {
                const { id, groups } = await issueOf(storage(), environmentId, pick(one.from))
                const fingerprints = groups
                  .filter((_, place) => one.groups & (1 << place))
                  .map((group) => group.fingerprint)
                const split = { fingerprints, newIssueId: newRecordId() }
                if (fingerprints.length > 0) await storage().splitIssue({ environmentId, id }, split, change(), [])
              }
            }
            const issues: IssueWhole[] = []
            for (const { id } of await listAll(storage(), environmentId)) {
              issues.push(await issueOf(storage(), environmentId, id))
            }
            for (const issue of issues) await assertCounted(issue, environmentId, reported)
            const detected = new Set(reported.filter(({ recovery }) => !recovery).map(({ fingerprint }) => fingerprint))
            const grouped = issues.flatMap(({ groups }) => groups.map(({ fingerprint }) => fingerprint))
            assert.deepEqual(grouped.toSorted(), [...detected].toSorted())
          }),
          { numRuns: 40 },
        )
      },
    )

    async function assertCounted(issue: IssueWhole, environmentId: string, reported: Reported[]) {
      assert.deepEqual(
        numbersOf(issue),
        expected(
          reported,
          issue.groups.map(({ fingerprint }) => fingerprint),
        ),
      )
      for (const group of issue.groups) {
        assert.deepEqual(numbersOf(group), expected(reported, [group.fingerprint]))
      }
      const page = { limit: 1000, after: null }
      const { id, occurrences, runs, agents } = issue
      const listed = [
        (await storage().listIssueOccurrences(environmentId, id, 'DETECTION', page)).rows.length,
        (await storage().listAffectedRuns(environmentId, id, page)).rows.length,
        (await storage().listAffectedAgents(environmentId, id, page)).rows.reduce(
          (sum, row) => sum + row.occurrences,
          0,
        ),
      ]
      assert.deepEqual(listed, [occurrences, runs, occurrences])
      assert.equal((await storage().listAffectedAgents(environmentId, id, page)).rows.length, agents)
    }
  })
}

type Numbers = Pick<IssueWhole, 'occurrences' | 'recoveries' | 'runs' | 'agents' | 'firstSeen' | 'lastSeen'>

function numbersOf({ occurrences, recoveries, runs, agents, firstSeen, lastSeen }: Numbers): Numbers {
  return { occurrences, recoveries, runs, agents, firstSeen, lastSeen }
}

function expected(reported: Reported[], fingerprints: string[]): Numbers {
  const of = reported.filter(({ fingerprint }) => fingerprints.includes(fingerprint))
  const detections = of.filter(({ recovery }) => !recovery)
  return {
    occurrences: detections.length,
    recoveries: of.length - detections.length,
    runs: new Set(detections.map(({ run }) => run).filter((run) => run !== null)).size,
    agents: new Set(detections.map(({ agent }) => agent)).size,
    firstSeen: Math.min(...detections.map(({ time }) => time)),
    lastSeen: Math.max(...detections.map(({ time }) => time)),
  }
}
