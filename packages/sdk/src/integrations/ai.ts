/**
 * Vercel AI SDK 5 to 7: `model: recordModel(openai('gpt-5'), tacho)` and `tools: guardTools({ … }, tacho)`. Also for the
 * models and tools of Mastra.
 */
import { canRecord, coreOf } from '../border.ts'
import { readSafely } from '../recording/json.ts'
import type { StopSignal } from '../delivery/runtime.ts'
import type { Recorder } from '../recorder.ts'
import type { Tacho } from '../tacho.ts'
import { askedCallsOf } from './asked-calls.ts'
import { fitsSchema } from './fits.ts'
import { fields, guarded, text, toolNames, withFunction, type Fields } from './host.ts'
import { awaitedHostCall } from './host-call.ts'
import { answerOf, messagesOf } from './messages.ts'
import { callUsage, gatewayCost } from './call-usage.ts'
import { ModelCall, type ModelResult } from './model-call.ts'
import { ModelStream, type Collector, type ReadableStream } from './model-stream.ts'
import { openCallsOf } from './open-calls.ts'
import type { WrapOptions } from '../guard/rules.ts'
import { unguarded } from './unguarded.ts'

/** A language model of the AI SDK, of any version of its provider interface. */
export interface LanguageModel {
  readonly modelId: string
  doGenerate(options: never): PromiseLike<unknown>
  doStream(options: never): PromiseLike<unknown>
}

/**
 * The same model; each of its calls is recorded as an LLM_CALL of the current run. Outside a run, each call becomes a run
 * of its own. Recording never changes or delays what the model returns or throws.
 * @param model a model object, for example `openai('gpt-5')`. The name of a gateway model is returned as it is: its calls
 * cannot be recorded, which a warning says.
 */
export function recordModel<Model extends LanguageModel | string>(model: Model, tacho: Recorder): Model {
  if (!canRecord(tacho, 'Model calls')) return model
  if (typeof model !== 'string') return recorded(model as Model & LanguageModel, tacho)
  const message = `The calls of ${String(model)} are not recorded: pass a model object instead of its name.`
  coreOf(tacho).diagnostics.report('warning', 'model_not_recorded', message)
  return model
}

function recorded<Model extends LanguageModel>(model: Model, tacho: Recorder): Model {
  openCallsOf(coreOf(tacho))
  const call = (options: unknown, isSilent = false) => {
    const request = () => ({
      model: model.modelId,
      provider: text((model as { provider?: unknown }).provider),
      messages: messagesOf(fields(options)['prompt']),
      tools: toolNames(fields(options)['tools']),
    })
    return new ModelCall(tacho, request, { isSilent })
  }
  const doGenerate = (...callArguments: [never]): Promise<unknown> =>
    awaitedHostCall(tacho, {
      begin: () => call(callArguments[0]),
      call: () => model.doGenerate(...callArguments),
      observe(recorded, result) {
        recorded.end(() => wholeResult(result))
        return result
      },
    })
  const doStream = (...callArguments: [never]): Promise<unknown> =>
    awaitedHostCall(tacho, {
      // `streamText` reports a failure to its host only in a callback or in a part.
      begin: () => call(callArguments[0], true),
      call: () => model.doStream(...callArguments),
      observe(recorded, result) {
        const { stream } = result as { stream: ReadableStream }
        return { ...(result as object), stream: new ModelStream(recorded, new StreamedParts()).web(stream) }
      },
    })
  // Models are classes with private fields, so methods run on the model itself.
  return new Proxy(model, {
    get(target, name) {
      if (name === 'doGenerate') return doGenerate
      if (name === 'doStream') return doStream
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/**
 * The same tools, guarded: policies decide each call, a person approves it if a policy requires that, and the call is
 * recorded as a TOOL_CALL. A call that may not run throws a ToolBlockedError; the AI SDK turns it into a `tool-error`.
 * @throws TypeError for a tool that cannot be guarded: one without `execute`, or a tool of Mastra.
 */
export function guardTools<Tools extends Readonly<Record<string, object>>>(
  tools: Tools,
  tacho: Tacho,
  options?: WrapOptions,
): Tools {
  const guard = (name: string, tool: object) => {
    const why = whyNot(tool)
    if (why !== null) return unguarded(tacho, tool, name, why, options)
    const { inputSchema, parameters } = fields(tool)
    askedCallsOf(tacho).guard(name, fitsSchema(inputSchema ?? parameters))
    return withFunction(tool, 'execute', (execute) => {
      const isGenerator = execute.constructor.name === 'AsyncGeneratorFunction'
      const run = (...args: unknown[]): unknown => {
        const result = execute.call(tool, ...args) as unknown
        // The AI SDK would never run the body of this generator.
        if (!isGenerator && readSafely(() => isIterable(result), false))
          throw new TypeError(`${name} returns a generator: declare it async function*`)
        return result
      }
      const call = (input: unknown, options: unknown, ...more: unknown[]) => {
        const { abortSignal, toolCallId: callId } = fields(options)
        const signal = abortSignal as StopSignal | undefined
        return guarded<unknown>(
          tacho,
          { name, input, signal, callId },
          (judged) => run(judged, options, ...more),
          (error) => {
            throw new Error(error.modelText, { cause: error })
          },
        )
      }
      // The AI SDK reads the values of a generator only if `execute` returns one at once.
      if (!isGenerator) return call
      return async function* (...args: Parameters<typeof call>) {
        return yield* (await call(...args)) as AsyncIterable<unknown>
      }
    })
  }
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, guard(name, tool)])) as Tools
}

function isIterable(value: unknown): boolean {
  return typeof (value as AsyncIterable<unknown> | null)?.[Symbol.asyncIterator] === 'function'
}

const MASTRA_TOOL = Symbol.for('mastra.core.tool.Tool')

function whyNot(tool: object): string | null {
  const { execute, isProviderExecuted } = fields(tool)
  if (MASTRA_TOOL in tool)
    return 'it is a tool of Mastra, which changes its input; make it with guardTool of @tacho/sdk/mastra.'
  if (isProviderExecuted === true) return 'the provider runs it.'
  if (typeof execute !== 'function') return 'it has no execute, so another program runs it.'
  return null
}

class StreamedParts implements Collector {
  isComplete = false
  #text = ''
  readonly #content: unknown[] = []
  /** Inputs as received, including those of calls that never became complete. */
  readonly #inputs = new Map<unknown, Fields & { input: string }>()
  #model: unknown
  #usage: unknown
  #metadata: unknown
  #finishReason: unknown

  add(contentPart: Fields): boolean {
    const type = String(contentPart['type'])
    if (type === 'text-delta') this.#text += text(contentPart['delta'] ?? contentPart['textDelta']) ?? ''
    else if (type === 'tool-call') this.#content.push(contentPart)
    else if (type === 'tool-input-start')
      this.#inputs.set(contentPart['id'], {
        ...contentPart,
        type: 'tool-call',
        toolCallId: contentPart['id'],
        input: '',
      })
    else if (type === 'tool-input-delta') this.#addInput(contentPart)
    else if (type === 'response-metadata') this.#model = contentPart['modelId'] ?? this.#model
    else if (type === 'finish') {
      this.isComplete = true
      this.#usage = contentPart['usage']
      this.#metadata = contentPart['providerMetadata']
      this.#finishReason = contentPart['finishReason']
    }
    return type.endsWith('-delta')
  }

  callId({ type, toolCallId }: Fields): unknown {
    return type === 'tool-call' ? toolCallId : undefined
  }

  errorIn({ type, error = 'error' }: Fields): unknown {
    return type === 'error' ? error : undefined
  }

  #addInput({ id, delta }: Fields): void {
    const call = this.#inputs.get(id)
    if (call) call.input += text(delta) ?? ''
  }

  result(): ModelResult {
    const ids = new Set(this.#content.map((contentPart) => fields(contentPart)['toolCallId']))
    const partial = [...this.#inputs.values()].filter(({ toolCallId }) => !ids.has(toolCallId))
    const content = this.#text === '' ? this.#content : [{ type: 'text', text: this.#text }, ...this.#content]
    const output = content.length > 0 ? answerOf(content) : undefined
    const finishReason = reasonOf(this.#finishReason)
    return {
      model: this.#model,
      usage: callUsage(this.#usage),
      cost: gatewayCost(this.#usage, this.#metadata),
      output,
      finishReason,
      // A stream without a finish reason was cut off.
      asked: [...this.#content, ...partial].map((contentPart) => ({
        finish_reason: finishReason ?? 'cut',
        ...fields(contentPart),
      })),
      hasApprovals: true,
    }
  }
}

function wholeResult(rawResult: unknown): ModelResult {
  const { content, usage, finishReason, response, providerMetadata } = fields(rawResult)
  const model = fields(response)['modelId']
  return {
    model,
    usage: callUsage(usage),
    cost: gatewayCost(usage, providerMetadata),
    output: answerOf(content),
    finishReason: reasonOf(finishReason),
    asked: content,
    hasApprovals: true,
  }
}

/**
 * Since AI SDK 6, the reason is an object: `{ unified, raw }`. `other` stands for a reason that the SDK does not know.
 */
function reasonOf(rawReason: unknown): unknown {
  const { unified = rawReason, raw } = fields(rawReason)
  return unified === 'other' && typeof rawReason === 'object' ? raw : unified
}
