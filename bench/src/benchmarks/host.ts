/** The cost of recording for its host, compared with alternatives. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { Benchmark, Setting } from '../benchmark.ts'
import { startChild, type Child } from '../child.ts'
import {
  KINDS,
  messagesOf,
  modelTexts,
  QUICK_TEXTS,
  TEXTS as TEXT_COUNT,
  type HostCost,
  type HostLoad,
  type Recorder,
} from '../load/host/model-calls.ts'
import { folders, installTypeScript, python } from '../load/host/others.ts'
import { ROOT } from '../place.ts'
import { below, ratioAtLeast, row, type Row } from '../result.ts'
import { inTurn } from '../rounds.ts'
import { startProcess } from '../server-process.ts'
import { spreadOf } from '../stats.ts'
import { figure } from '../text.ts'

const LOAD = path.join(import.meta.dirname, '../load/host')
/**
 * `length`: characters of the input and of the output. `burst`: calls between two flushes, at most about 20 MB.
 * `times`: the others must need at least this many times our processor time.
 */
const LENGTHS = [
  { size: '400 B', length: 400, burst: 500, kB: 0.4, times: 1 },
  { size: '10 kB', length: 10_000, burst: 500, kB: 10, times: 2 },
  { size: '100 kB', length: 100_000, burst: 50, kB: 100, times: 2 },
  { size: '1 MB', length: 1_000_000, burst: 6, kB: 1_000, times: 2 },
]
const TEXTS = KINDS.flatMap((kind) =>
  LENGTHS.map((each) => ({ ...each, kind, keys: 0, name: `${each.size} of ${kind}` })),
)
/** A payload contains at most 43,690 of these keys, but V8 lists all of them without a pause. */
const KEYS = { name: '500,000 keys', kind: KINDS[0], length: 400, keys: 500_000, burst: 2, kB: 256, times: 2 }
const SHAPES = [...TEXTS, KEYS]
const OTHERS = ['opentelemetry', 'langfuse'] as const
const LANGUAGES = {
  TypeScript: { callUs: 20, callUsPerKb: 1 },
  Python: { callUs: 40, callUsPerKb: 3 },
}
type Language = keyof typeof LANGUAGES
type Figures = Record<keyof HostCost, number[]>

export const host: Benchmark = {
  name: 'host',
  title: 'What recording costs its host',
  part: 'sdk',
  beside: 'the better of the others',
  about: [
    'One process records model calls, each with an input, an output and the usage. **Sentences**: input and output are English texts of the given length. \
Some of their sentences contain words such as password, token and key. No text occurs twice. **Conversation**: the input is a list of messages with the given length in \
total. Only the last two messages are new in each call, as in the conversation of an agent, and none contains such words. **500,000 keys**: the input is an object with \
500,000 fields. The other SDKs take the list or the object as JSON text, which is made in the call. Tacho shortens a payload of more than 256 kB. A service answers at \
once and counts the events; all must arrive. Tacho’s SDK runs in turn with OpenTelemetry’s SDK (its batch processor; OTLP as JSON in TypeScript, as protobuf in Python) and with Langfuse’s SDK, each with its default settings. Tacho masks credentials, in Python with \
its extra `fast`; the others mask nothing. Each recorder runs in a separate process, which is warm.',
    '**Processor time** is that of the whole process for each call, until everything is delivered. **The ratio** is the time of the better of the others \
divided by ours: with 2 it needs twice our time, with 0.5 half of it. **In the call** is the median of a record call. **The worst \
pause** is the longest time between two turns of the host while it records and delivers; in Python, the longest time that the host’s thread waits to run \
again. The time in which other programs ran instead is taken off where the system counts it; the note shows the noise that is left.',
    'Before, at commit f64e4f5841, masking and JSON were done in the call. On the same machine, in turn with the rest and as loaded as for the table, the call took \
65 of 87 µs, 1,380 of 1,590 µs and nearly all of 12,700 µs in TypeScript, and 197 of 235 µs and 1,250 of 1,300 µs in Python (100 kB was not measured).',
  ],
  run: async (setting) => {
    const { place, plan } = setting
    const isQuick = plan.size === 'quick'
    await using sink = await startProcess({
      args: [path.join(LOAD, 'sink.ts')],
      logFile: path.join(place, 'sink.log'),
      readyPath: '/',
    })
    if (!isQuick) python.install()
    const notes: string[] = []
    const hasOthers = !isQuick && installTypeScript()
    const hasPython = !isQuick && python.whyNot() === false
    const why = isQuick ? 'a quick run installs nothing' : 'npm could not install their packages'
    if (!hasOthers) notes.push(`OpenTelemetry and Langfuse were not measured in TypeScript: ${why}.`)
    if (!hasPython) notes.push(`Python was not measured: ${(!isQuick && python.whyNot()) || why}.`)
    const rows: Row[] = []
    const found: { language: Language; by: Recorder; name: string; figures: Figures }[] = []
    for (const language of Object.keys(LANGUAGES) as Language[]) {
      if (language === 'Python' && !hasPython) continue
      const others = language === 'Python' || hasOthers ? OTHERS : []
      const recorders = ['tacho', ...others, 'nothing'] as const
      // A quick run shares the processes instead of starting new ones for each length.
      await using shared = isQuick ? startRecorders(language, recorders) : null
      const figuresOf = async (load: Omit<HostLoad, 'by' | 'folder'>) => {
        if (shared) return measure(setting, shared, load)
        await using own = startRecorders(language, recorders)
        return await measure(setting, own, load)
      }
      for (const { name, kind, length, keys, burst, kB, times } of SHAPES) {
        const texts = path.join(place, `${length}-${kind}.jsonl`)
        writeFileSync(
          texts,
          modelTexts(length, kind, isQuick ? QUICK_TEXTS : TEXT_COUNT)
            .map((text) => `${JSON.stringify(text)}\n`)
            .join(''),
        )
        const messages = messagesOf(length, kind)
        const size = isQuick ? { keys: keys / 100, burst: Math.min(burst, 5) } : { keys, burst }
        const load = { url: sink.url, texts, messages, ...size, seconds: plan.seconds / 2 }
        const figures = await figuresOf(load)
        for (const [by, each] of Object.entries(figures))
          found.push({ language, by: by as Recorder, name, figures: each })
        const { tacho } = figures
        if (!tacho) continue
        const best =
          others.flatMap((by) => figures[by]?.totalUs ?? []).length > 0
            ? better(others.map((by) => figures[by]?.totalUs ?? []))
            : null
        const { callUs, callUsPerKb } = LANGUAGES[language]
        rows.push(
          row(
            `${language}, ${name}: processor time`,
            'µs',
            tacho.totalUs,
            best,
            ...(best ? [ratioAtLeast(times)] : []),
          ),
          row(`${language}, ${name}: in the call`, 'µs', tacho.callUs, null, below(callUs + callUsPerKb * kB)),
          row(`${language}, ${name}: worst pause`, 'ms', tacho.pauseMs, null, below(5)),
        )
      }
    }
    const alone = found.filter(({ by }) => by === 'nothing').map(({ figures }) => spreadOf(figures.pauseMs))
    const longest = figure(Math.max(...alone.map(({ max }) => max)))
    notes.push(
      `The worst pause of a host that records nothing: up to ${longest} ms, which is the noise of the machine.`,
    )
    return { rows, notes, table: tableOf(found) }
  },
}

/** The figures with the smaller median. */
function better(all: readonly number[][]): number[] | null {
  return all.toSorted((a, b) => spreadOf(a).median - spreadOf(b).median)[0] ?? null
}

/** Starts a process for each recorder. */
function startRecorders(language: Language, recorders: readonly Recorder[]) {
  const stack = new AsyncDisposableStack()
  const children = recorders.map((by) => {
    return { by, child: stack.use(language === 'Python' ? startPython() : startTypeScript()) }
  })
  return { children, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function measure(
  setting: Setting,
  { children }: ReturnType<typeof startRecorders>,
  load: Omit<HostLoad, 'by' | 'folder'>,
): Promise<Partial<Record<Recorder, Figures>>> {
  const sides = children.map(({ by, child }) => [by, () => child.call({ by, folder: folders[by], ...load })] as const)
  const found = await inTurn(setting, Object.fromEntries(sides), { warmUp: true, alternating: true })
  return found as Partial<Record<Recorder, Figures>>
}

const startTypeScript = (): Child<HostLoad, HostCost> => startChild(new URL('../load/host/record.ts', import.meta.url))

function startPython(): Child<HostLoad, HostCost> {
  const env = { ...process.env, PYTHONPATH: path.join(ROOT, 'sdks/python/src') }
  const child = spawn(python.interpreter, [path.join(LOAD, 'record.py')], { stdio: ['pipe', 'pipe', 'inherit'], env })
  const exited = once(child, 'exit')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    async call(load) {
      child.stdin.write(`${JSON.stringify(load)}\n`)
      const line = await lines.next()
      if (line.done) throw new Error('record.py ended')
      return JSON.parse(line.value) as HostCost
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
      await exited
    },
  }
}

/** A table of Tacho, OpenTelemetry and Langfuse, by length. */
function tableOf(found: readonly { language: Language; by: Recorder; name: string; figures: Figures }[]): string[] {
  const languages = [...new Set(found.map(({ language }) => language))]
  const cell = (language: Language, name: string, figures: keyof HostCost, unit: string): string => {
    const medians = (['tacho', ...OTHERS] as const).flatMap((by) => {
      const one = found.find((each) => each.language === language && each.name === name && each.by === by)
      return one ? [figure(spreadOf(one.figures[figures]).median)] : []
    })
    return `${medians.join(' / ')} ${unit}`
  }
  const head = languages.map((language) => `${language}: Tacho / OpenTelemetry / Langfuse | in the call | worst pause`)
  return [
    `| text | ${head.join(' | ')} |`,
    `|${'---|'.repeat(1 + 3 * languages.length)}`,
    ...SHAPES.map(({ name }) => {
      const cells = languages.map((language) =>
        [
          cell(language, name, 'totalUs', 'µs'),
          cell(language, name, 'callUs', 'µs'),
          cell(language, name, 'pauseMs', 'ms'),
        ].join(' | '),
      )
      return `| ${name} | ${cells.join(' | ')} |`
    }),
  ]
}
