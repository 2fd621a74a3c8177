import assert from 'node:assert/strict'
import { test } from 'node:test'
import { requestMemory } from '../../src/config/config.ts'

const MIB = 1_048_576

test('bodies and replies get a sixteenth of the memory each, between 16 and 64 MiB', () => {
  for (const [available, expected] of [
    [128, 16],
    [512, 32],
    [1_024, 64],
    [65_536, 64],
  ] as const) {
    assert.deepEqual(requestMemory(available * MIB), { bodies: expected * MIB, replies: expected * MIB })
  }
})
