/** The machine on which the figures were measured. */
import { execFileSync } from 'node:child_process'
import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ROOT } from './place.ts'
import { timesOf } from './stats.ts'

export interface Machine {
  /** The date, in ISO 8601. */
  date: string
  commit: string
  node: string
  cpu: string
  memory: string
  system: string
  /** Duration of a synced 4 KiB write, which each commit needs. */
  diskWriteMs: number
  /** Share of the processors that other programs used during the measurement, or just before it if /proc is missing. */
  others: number
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
    others: await busyShare(),
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
  const before = processorTimes()
  await sleep(LOOK_MS)
  const { all, idle } = processorTimes(before)
  return 1 - idle / all
}

/** Processor time of all cores in milliseconds, since the machine's start or an earlier reading. */
function processorTimes(since = { idle: 0, all: 0 }): { idle: number; all: number } {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0)
  const times = os.cpus().map((cpu) => cpu.times)
  const all = sum(times.flatMap(({ user, nice, sys, irq, idle }) => [user, nice, sys, irq, idle]))
  return { idle: sum(times.map(({ idle }) => idle)) - since.idle, all: all - since.all }
}

/**
 * Measures the share of the processors that other programs use, outside this process and its children. The returned
 * function gives the share since the call, or null without /proc.
 */
export function watchOthers(): () => number | null {
  const [before, ownBefore] = [processorTimes(), ownMs()]
  return () => {
    const [{ all, idle }, own] = [processorTimes(before), ownMs()]
    return own === null || ownBefore === null ? null : Math.max(0, (all - idle - (own - ownBefore)) / all)
  }
}

const TICK_MS = 10

/** Processor time of this process and its descendants, including ended ones. */
export function ownMs(): number | null {
  let pids: string[]
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return null
  }
  const processes = pids.flatMap((pid) => {
    try {
      // The name may contain anything. After it come the state, the parent and so on, and from the twelfth field on
      // four times.
      const [, rest = ''] = readFileSync(`/proc/${pid}/stat`, 'latin1').split(/\) (?!.*\) )/s)
      const fields = rest.split(' ')
      const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
      return [{ pid: Number(pid), parent: Number(fields[1]), ticks }]
    } catch {
      return []
    }
  })
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const sumBelow = (pid: number): number =>
    (children.get(pid) ?? []).reduce((sum, child) => sum + child.ticks + sumBelow(child.pid), 0)
  const own = processes.find(({ pid }) => pid === process.pid)?.ticks ?? 0
  return (own + sumBelow(process.pid)) * TICK_MS
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
