/** The server for the suite's server scenarios, on standard input and output. It logs every call that it gets. */
import { createHmac } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

type Json = Record<string, unknown>

interface Message {
  id?: number | string
  method?: string
  params?: Json & { _meta?: Json }
  result?: Json
}

interface Call {
  readonly meta: Json
  readonly answers: Readonly<Record<string, Json | null>>
  readonly state: unknown
  notify(method: string, params: object): void
  /** Sends a request to the client while the call is under way, as in the protocol of 2025. */
  ask(method: string, params: object): Promise<Json>
}

const say = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const text = (said: string) => ({ type: 'text', text: said })
const image = { type: 'image', data: PIXEL, mimeType: 'image/png' }
const resource = { type: 'resource', resource: { uri: 'test://mixed', mimeType: 'text/plain', text: 'mixed' } }
const complete = (...content: object[]) => ({ resultType: 'complete', content })

const form = (message: string, field: string, type = 'string') => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] } },
})
const sampling = (said: string) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: text(said) }], maxTokens: 100 },
})
const roots = { method: 'roots/list', params: {} }

const seal = (state: string) => `${state}.${createHmac('sha256', 'conformance').update(state).digest('hex')}`
const questions = (inputRequests: object, state?: string) => ({
  resultType: 'input_required',
  inputRequests,
  ...(state !== undefined && { requestState: seal(state) }),
})

/** A tool that asks the client, and completes once it has all answers. The client must return `state` unchanged. */
function asking(inputRequests: Readonly<Record<string, object>>, state?: string) {
  return ({ answers, state: sent }: Call) => {
    const isWhole = Object.keys(inputRequests).every((key) => isAnswer(answers[key]))
    if (!isWhole) return questions(inputRequests, state)
    if (state !== undefined && sent !== seal(state)) throw new Error('The state was changed.')
    return complete(text('state-ok'))
  }
}

const isAnswer = (answer: unknown) => typeof answer === 'object' && answer !== null

const TOOLS: Readonly<Record<string, (call: Call) => object | Promise<object>>> = {
  test_simple_text: () => complete(text('This is a simple text response for testing.')),
  test_multiple_content_types: () => complete(text('Several'), image, resource),
  test_error_handling: () => ({ ...complete(text('This tool intentionally returns an error')), isError: true }),
  test_tool_with_progress({ meta: { progressToken }, notify }) {
    for (const progress of [0, 50, 100]) notify('notifications/progress', { progressToken, progress, total: 100 })
    return complete(text('Done'))
  },
  async test_sampling({ ask }) {
    const { params } = sampling('Test')
    return complete(text(JSON.stringify(await ask('sampling/createMessage', params))))
  },
  async test_elicitation({ ask }) {
    const { params } = form('Who?', 'username')
    return complete(text(JSON.stringify(await ask('elicitation/create', params))))
  },
  test_input_required_result_elicitation: asking({ user_name: form('What is your name?', 'name') }),
  test_input_required_result_sampling: asking({ capital_question: sampling('What is the capital of France?') }),
  test_input_required_result_list_roots: asking({ client_roots: roots }),
  test_input_required_result_request_state: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, 'confirm'),
  test_input_required_result_tampered_state: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, 'tampered'),
  test_input_required_result_multiple_inputs: asking(
    { user_name: form('Who?', 'name'), greeting: sampling('Greet'), client_roots: roots },
    'several',
  ),
  test_input_required_result_multi_round({ answers }) {
    if (isAnswer(answers['step2'])) return complete(text('Done'))
    return isAnswer(answers['step1'])
      ? questions({ step2: form('Step 2: What is your favorite color?', 'color') }, 'round-2')
      : questions({ step1: form('Step 1: What is your name?', 'name') }, 'round-1')
  },
  test_input_required_result_capabilities({ meta }) {
    const can = (meta['io.modelcontextprotocol/clientCapabilities'] ?? {}) as Json
    return questions({ ...(can['elicitation'] ? { name: form('Who?', 'name') } : {}), said: sampling('Say it') })
  },
}

const says = (...contents: object[]) => ({
  resultType: 'complete',
  messages: contents.map((content) => ({ role: 'user', content })),
})

const PROMPTS: Readonly<Record<string, (given: Json, answers: Call['answers']) => object>> = {
  test_simple_prompt: () => says(text('Say it.')),
  test_prompt_with_arguments: ({ arg1, arg2 }) => says(text(`With ${String(arg1)} and ${String(arg2)}`)),
  test_prompt_with_embedded_resource: ({ resourceUri }) =>
    says(
      { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'inside' } },
      text('Read it.'),
    ),
  test_prompt_with_image: () => says(image, text('Look at it.')),
  test_input_required_result_prompt: (_given, { user_context: answer }) =>
    isAnswer(answer) ? says(text('Done')) : questions({ user_context: form('Which context?', 'context') }),
}

const RESOURCES: Readonly<Record<string, object>> = {
  'test://static-text': { mimeType: 'text/plain', text: 'Static' },
  'test://static-binary': { mimeType: 'image/png', blob: PIXEL },
  'test://template/123/data': { mimeType: 'application/json', text: '{"id":"123"}' },
}

function named<T>(known: Readonly<Record<string, T>>, name: unknown): T {
  const found = Object.hasOwn(known, String(name)) ? known[String(name)] : undefined
  if (found === undefined) throw new Error(`There is no ${String(name)}.`)
  return found
}

/** Functions that wait for the client's answers, by request id. */
const asked = new Map<unknown, (result: Json) => void>()

async function call(params: Json & { _meta?: Json }): Promise<object> {
  const { name, arguments: given = {}, inputResponses, requestState, _meta = {} } = params
  appendFileSync(process.env['GOT'] ?? '', `${JSON.stringify({ name, given, inputResponses })}\n`)
  return named(
    TOOLS,
    name,
  )({
    meta: _meta,
    answers: (inputResponses ?? {}) as Call['answers'],
    state: requestState,
    notify: (method, more) => say({ method, params: more }),
    ask: (method, more) =>
      new Promise((resolve) => {
        const id = `question-${asked.size}`
        asked.set(id, resolve)
        say({ id, method, params: more })
      }),
  })
}

async function resultOf({ method, params = {} }: Message): Promise<object> {
  const capabilities = { tools: {}, prompts: {}, resources: {}, completions: {} }
  const about = { capabilities, serverInfo: { name: 'conformance', version: '1' } }
  if (method === 'initialize') return { protocolVersion: params['protocolVersion'], ...about }
  if (method === 'server/discover') return { resultType: 'complete', supportedVersions: ['2026-07-28'], ...about }
  if (method === 'tools/call') return call(params)
  if (method === 'prompts/get') {
    const { name, arguments: given = {}, inputResponses = {} } = params
    return named(PROMPTS, name)(given as Json, inputResponses as Call['answers'])
  }
  if (method === 'completion/complete') return { resultType: 'complete', completion: { values: ['test'] } }
  const cache = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' }
  if (method === 'resources/read') {
    const { uri } = params
    return { ...cache, contents: [{ uri, ...named(RESOURCES, uri) }] }
  }
  const described = (names: object) => Object.keys(names).map((name) => ({ name, description: name }))
  if (method === 'prompts/list') return { ...cache, prompts: described(PROMPTS) }
  if (method === 'resources/list') {
    return { ...cache, resources: described(RESOURCES).map((resource) => ({ ...resource, uri: resource.name })) }
  }
  const tools = described(TOOLS).map((tool) => ({ ...tool, inputSchema: { type: 'object' } }))
  return { ...cache, tools }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Message
  const { id, method, result } = message
  if (method === undefined) asked.get(id)?.(result ?? {})
  if (method === undefined || id === undefined) return
  void resultOf(message).then(
    (answer) => say({ id, result: answer }),
    (error: Error) => say({ id, error: { code: -32_602, message: error.message } }),
  )
})
