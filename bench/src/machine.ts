/** What the figures were measured on. */
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './place.ts'
import { timesOf } from './stats.ts'

export interface Machine {
  /** ISO 8601, the day. */
  date: string
  commit: string
  node: string
  cpu: string
  memory: string
  system: string
  /** Time of a 4 KiB write that reaches the disk: what every commit pays. */
  diskWriteMs: number
  /** Share of the processors that others took just before. */
  busyBefore: number
}

const PAGE = Buffer.alloc(4096)
const DISK_WRITES = 50
const LOOK_MS = 1_000

export async function describeMachine(place: string): Promise<Machine> {
  const [first] = os.cpus()
  return {
    date: new Date().toISOString().slice(0, 10),
    commit: commitName(),
    node: process.versions.node,
    cpu: `${os.cpus().length} × ${first?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(os.totalmem() / 1024 ** 3)} GiB`,
    system: `${os.type()} ${os.release().split('-', 1).join('')}`,
    busyBefore: await busyShare(),
    diskWriteMs: diskWriteMs(place),
  }
}

function commitName(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim()
  try {
    const isChanged = git('status', '--porcelain', '--untracked-files=no', '--', ':!docs', ':!bench') !== ''
    return git('rev-parse', '--short=10', 'HEAD') + (isChanged ? ' with changes' : '')
  } catch {
    return 'unknown'
  }
}

async function busyShare(): Promise<number> {
  const look = () => {
    const times = os.cpus().map((cpu) => cpu.times)
    const idle = times.reduce((sum, each) => sum + each.idle, 0)
    return { idle, all: times.reduce((sum, each) => sum + each.user + each.nice + each.sys + each.irq + each.idle, 0) }
  }
  const before = look()
  await sleep(LOOK_MS)
  const after = look()
  return 1 - (after.idle - before.idle) / (after.all - before.all)
}

function diskWriteMs(place: string): number {
  const file = openSync(path.join(place, 'write-test'), 'w')
  const took = Array.from({ length: DISK_WRITES }, (_, index) => {
    const from = performance.now()
    writeSync(file, PAGE, 0, PAGE.length, index * PAGE.length)
    fdatasyncSync(file)
    return performance.now() - from
  })
  closeSync(file)
  return timesOf(took).p50
}
