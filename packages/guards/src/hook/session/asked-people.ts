/**
 * Approval requests that a hook waits for: a small file for each, because the agent may kill the hook. If the process
 * has died, a later hook finds the file and records that nobody waits for the request any more.
 *
 *   asked --a decision, the agent stops the hook--> (deleted)
 *      \--the process dies--> a later hook records APPROVAL_WITHDRAWN --> (deleted)
 */
import type { Tacho } from '@tacho/sdk'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { digest } from '../../state.ts'
import type { AgentName } from '../agents.ts'
import { sessionRun } from './call-events.ts'
import { subagentOf, textOf, type HookRecord, type Subagent } from '../record.ts'

interface Asked {
  readonly pid: number
  readonly agent: AgentName
  readonly sessionId: string
  readonly subagent?: Subagent | undefined
  readonly toolName: string
  readonly toolCallId?: string | undefined
  readonly approvalId: string
  readonly inputHash?: string | undefined
}

const POLLED = /\/firewall-approvals\/([\w-]{1,255})\?/

export function openAskedPeople(directory: string) {
  const folder = path.join(directory, 'asked')
  return {
    /** Notes the approvals that the hook of this record waits for, from its requests to the service. */
    watch(agent: AgentName, record: HookRecord) {
      const { sessionId, toolCallId, fields } = record
      const facts = { pid: process.pid, agent, sessionId, subagent: subagentOf(record), toolCallId }
      const toolName = textOf(fields['tool_name']) ?? ''
      const files = new Set<string>()
      let inputHash: string | undefined
      return {
        see(url: string, body: unknown): void {
          if (url.endsWith('/firewall-approvals') && typeof body === 'string') {
            inputHash = (JSON.parse(body) as { inputHash?: string }).inputHash
          }
          const [, approvalId] = POLLED.exec(url) ?? []
          if (approvalId === undefined) return
          const file = path.join(folder, `${approvalId}.json`)
          if (files.has(file)) return
          files.add(file)
          mkdirSync(folder, { recursive: true, mode: 0o700 })
          const asked: Asked = { ...facts, toolName, approvalId, inputHash }
          writeFileSync(file, JSON.stringify(asked), { mode: 0o600 })
        },
        end(): void {
          for (const file of files) rmSync(file, { force: true })
        },
      }
    },
    recordLeft(tacho: Tacho): void {
      for (const file of filesIn(folder)) {
        const asked = read(file)
        if (asked && isAlive(asked.pid)) continue
        if (asked) {
          const { toolName, toolCallId, approvalId, inputHash, agent, sessionId } = asked
          sessionRun(tacho, asked).record({
            type: 'APPROVAL_WITHDRAWN',
            label: toolName,
            payload: { toolName, toolCallId, approvalId, inputHash, reason: 'process_ended' },
            eventId: `${agent}-${digest(`left\n${sessionId}\n${approvalId}`)}`,
          })
        }
        rmSync(file, { force: true })
      }
    },
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => path.join(folder, name))
  } catch {
    return []
  }
}

function read(file: string): Asked | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Asked
  } catch {
    return null
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists and belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
