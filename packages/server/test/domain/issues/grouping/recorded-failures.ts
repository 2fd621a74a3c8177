/**
 * 200 generated failures with known causes, the same in every run. The causes are typical of agents: tools, models,
 * databases, validation, networks. Some are hard to group: names in plain words, one message for two causes, one cause in
 * two models. They were written before the grouping rule was measured.
 */
import { type FailureKind, type SeenFailure, toldFailure } from '../../../../src/domain/issues/failure-issue.ts'
import type { StoredEvent } from '../../../../src/storage/record/events.ts'

export interface Frame {
  name: string
  path: string
  /** The source line, which Sentry's clients send and which Tacho does not record. */
  source: string
  isOwn: boolean
}

export interface RecordedFailure {
  cause: string
  /** The failure as the service reads it from the recorded event. */
  failure: SeenFailure
  /** Frames of `failure.error.stack`, the newest call first; empty without a stack. */
  frames: Frame[]
}

interface Cause {
  cause: string
  times: number
  kind: FailureKind
  language?: 'js' | 'python'
  agent?: string
  tool?: string
  /** Models whose calls fail by this cause. */
  models?: string[]
  type?: string
  message?: (vary: Vary) => string
  causes?: (vary: Vary) => { type: string; message: string }[]
  /** Stacks that lead to the same failure. A frame is `name file: source`; the newest call comes first. */
  stacks?: string[][]
}

/** Pseudo-random parts of failures, the same in every run. */
class Vary {
  readonly #n: number
  #state: number
  constructor(n: number) {
    this.#n = n
    this.#state = n + 1
  }
  /** A pseudo-random number, by Mulberry32. */
  number(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
  one<Item>(items: readonly Item[]): Item {
    return items[this.#n % items.length]!
  }
  hex(length: number): string {
    return Array.from({ length }, () => this.number(16).toString(16)).join('')
  }
  uuid(): string {
    return [8, 4, 4, 4, 12].map((length) => this.hex(length)).join('-')
  }
  token(length: number): string {
    const letters = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789'
    return Array.from({ length }, () => letters[this.number(letters.length)]).join('')
  }
}

const UNDICI = ['fetch node:internal/deps/undici/undici: return await fetchImpl(input, init)']
const JS_MAIN = [
  'runStep agent/loop.ts: const result = await tool.run(input)',
  'main agent/main.ts: await runStep(step)',
]
const JS_RETRY = ['retryStep agent/retry.ts: return await tool.run(input)', ...JS_MAIN]
const PG = ['query node_modules/pg/lib/client.js: const result = await new Promise(']
const QUERY = 'query db/pool.ts: return await client.query(text, values)'
const PY_MAIN = ['run_step agent/loop.py: result = tool.invoke(step.input)', '<module> agent/main.py: run_step(step)']
const HTTPX = [
  'map_httpcore_exceptions site-packages/httpx/_transports/default.py: raise mapped_exc(message) from exc',
  'send site-packages/httpx/_client.py: response = self._send_handling_auth(',
]

const CAUSES: Cause[] = [
  {
    cause: 'the order service does not answer',
    times: 7,
    kind: 'TOOL_FAILED',
    tool: 'get_order',
    type: 'TimeoutError',
    message: (v) => `no answer after ${3_000 + v.number(900)} ms`,
    stacks: [
      ['getOrder tools/orders.ts: throw new TimeoutError(ms)', ...JS_MAIN],
      ['getOrder tools/orders.ts: throw new TimeoutError(ms)', ...JS_RETRY],
    ],
  },
  {
    cause: 'the order does not exist',
    times: 5,
    kind: 'TOOL_FAILED',
    tool: 'get_order',
    type: 'Error',
    message: (v) => `order ord_${v.token(10)} not found`,
    stacks: [['getOrder tools/orders.ts: throw new Error(text)', ...JS_MAIN]],
  },
  {
    cause: 'the order is of another customer',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'get_order',
    type: 'Error',
    message: (v) => `order ord_${v.token(10)} belongs to another customer`,
    stacks: [['getOrder tools/orders.ts: throw new Error(text)', ...JS_MAIN]],
  },
  ...(
    [
      ['the payment service is down', (v: Vary) => `connect ECONNREFUSED 10.0.${v.number(9)}.${v.number(250)}:8443`],
      ['the name of the payment service is wrong', () => 'getaddrinfo ENOTFOUND payments.internal'],
      ['the certificate of the payment service expired', () => 'certificate has expired'],
    ] as const
  ).map(([cause, message]): Cause => {
    return {
      cause,
      times: 4,
      kind: 'TOOL_FAILED',
      tool: 'charge_card',
      type: 'TypeError',
      message: () => 'fetch failed',
      causes: (v) => [{ type: 'Error', message: message(v) }],
      stacks: [[...UNDICI, 'chargeCard tools/payment.ts: const reply = await fetch(url, request)', ...JS_MAIN]],
    }
  }),
  {
    cause: 'an order without lines is summed up',
    times: 4,
    kind: 'RUN_FAILED',
    type: 'TypeError',
    message: (v) => `Cannot read properties of undefined (reading '${v.one(['total', 'lines', 'currency'])}')`,
    stacks: [['summarize agent/summary.ts: return order.sum.total + order.sum.lines', ...JS_MAIN]],
  },
  {
    cause: 'a customer without an address is greeted',
    times: 4,
    kind: 'RUN_FAILED',
    type: 'TypeError',
    message: () => "Cannot read properties of null (reading 'city')",
    stacks: [['greeting agent/mail.ts: const { city } = customer.address', ...JS_MAIN]],
  },
  {
    cause: 'a proxy answers with a page',
    times: 4,
    kind: 'RUN_FAILED',
    type: 'SyntaxError',
    message: () => `Unexpected token '<', "<!DOCTYPE "... is not valid JSON`,
    stacks: [['JSON.parse <anonymous>: ', 'parseReply agent/model.ts: return JSON.parse(text)', ...JS_MAIN]],
  },
  {
    cause: 'the model answers in prose',
    times: 4,
    kind: 'RUN_FAILED',
    type: 'SyntaxError',
    message: (v) => `Unexpected token 'H', "${v.one(['Here is th', 'Hello! I h', 'Have a loo'])}"... is not valid JSON`,
    stacks: [['JSON.parse <anonymous>: ', 'parseReply agent/model.ts: return JSON.parse(text)', ...JS_MAIN]],
  },
  ...(
    [
      ['the model leaves out the customer', 'customerId', 'Required'],
      ['the model writes the amount as a text', 'amount', 'Expected number, received string'],
    ] as const
  ).map(([cause, path, message]): Cause => {
    return {
      cause,
      times: 4,
      kind: 'TOOL_FAILED',
      tool: 'refund_payment',
      type: 'ZodError',
      message: () => JSON.stringify([{ code: 'invalid_type', path: ['items', 0, path], message }], null, 2),
      stacks: [
        [
          'parse node_modules/zod/lib/types.js: throw result.error',
          'validateInput tools/validate.ts: return schema.parse(input)',
          ...JS_MAIN,
        ],
      ],
    }
  }),
  {
    cause: 'an order is stored twice',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'place_order',
    type: 'DatabaseError',
    message: () => 'duplicate key value violates unique constraint "orders_pkey"',
    stacks: [[...PG, QUERY, 'insertOrder db/orders.ts: await query(INSERT, values)', ...JS_MAIN]],
  },
  {
    cause: 'two orders wait for each other',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'place_order',
    type: 'DatabaseError',
    message: () => 'deadlock detected',
    stacks: [[...PG, QUERY, 'insertOrder db/orders.ts: await query(INSERT, values)', ...JS_MAIN]],
  },
  {
    cause: 'the database has no connection left',
    times: 5,
    kind: 'RUN_FAILED',
    type: 'DatabaseError',
    message: () => 'remaining connection slots are reserved for roles with the SUPERUSER attribute',
    stacks: [
      [...PG, QUERY, 'insertOrder db/orders.ts: await query(INSERT, values)', ...JS_MAIN],
      [...PG, QUERY, 'findCustomer db/customers.ts: const rows = await query(SELECT, [id])', ...JS_MAIN],
      [...PG, QUERY, 'saveNote db/notes.ts: await query(INSERT_NOTE, values)', ...JS_RETRY],
    ],
  },
  {
    cause: 'the invoice is not on disk',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'read_invoice',
    type: 'Error',
    message: (v) => `ENOENT: no such file or directory, open '/data/invoices/${v.number(9_999)}/${v.uuid()}.pdf'`,
    stacks: [
      ['async open node:internal/fs/promises: ', 'readInvoice tools/invoices.ts: await readFile(path)', ...JS_MAIN],
    ],
  },
  ...([429, 503] as const).map((status): Cause => {
    return {
      cause: `the CRM answers ${status}`,
      times: 4,
      kind: 'TOOL_FAILED',
      tool: 'find_contact',
      type: 'AxiosError',
      message: () => `Request failed with status code ${status}`,
      stacks: [
        [
          'settle node_modules/axios/lib/core/settle.js: reject(new AxiosError(',
          'findContact tools/crm.ts: const { data } = await axios.get(url)',
          ...JS_MAIN,
        ],
      ],
    }
  }),
  {
    cause: 'the limit of the model is reached',
    times: 7,
    kind: 'MODEL_FAILED',
    models: ['gpt-5'],
    type: 'RateLimitError',
    message: (v) =>
      `Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-5 in organization org-${v.token(20)} on tokens per min (TPM): Limit 30000, Used ${20_000 + v.number(9_000)}, Requested ${v.number(9_000)}. Please try again in ${v.number(9)}.${v.number(999)}s.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}`,
  },
  {
    cause: 'the conversation is too long',
    times: 5,
    kind: 'MODEL_FAILED',
    models: ['gpt-5'],
    type: 'BadRequestError',
    message: (v) =>
      `Error code: 400 - {'error': {'message': "This model's maximum context length is 128000 tokens. However, your messages resulted in ${128_001 + v.number(40_000)} tokens.", 'type': 'invalid_request_error', 'code': 'context_length_exceeded'}}`,
  },
  {
    cause: 'the provider refuses the content',
    times: 4,
    kind: 'MODEL_FAILED',
    models: ['gpt-5'],
    type: 'BadRequestError',
    message: (v) =>
      `Error code: 400 - {'error': {'message': "The response was filtered due to the prompt triggering our content management policy. Request id: ${v.uuid()}", 'type': 'invalid_request_error', 'code': 'content_filter'}}`,
  },
  {
    cause: 'the key of the provider is wrong',
    times: 4,
    kind: 'MODEL_FAILED',
    models: ['gpt-5'],
    type: 'AuthenticationError',
    message: (v) =>
      `401 Incorrect API key provided: sk-${v.token(4)}********${v.token(4)}. You can find your API key in your account.`,
  },
  {
    cause: 'the provider is overloaded',
    times: 5,
    kind: 'MODEL_FAILED',
    models: ['claude-sonnet-5'],
    type: 'APIError',
    message: (v) =>
      `529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_${v.token(24)}"}`,
  },
  {
    cause: 'the provider has an outage',
    times: 5,
    kind: 'MODEL_FAILED',
    models: ['claude-sonnet-5', 'claude-haiku-5'],
    type: 'APIError',
    message: (v) =>
      `500 {"type":"error","error":{"type":"api_error","message":"Internal server error"},"request_id":"req_${v.token(24)}"}`,
  },
  {
    cause: 'the document search does not answer',
    times: 5,
    kind: 'TOOL_FAILED',
    language: 'python',
    tool: 'search_docs',
    type: 'httpx.ReadTimeout',
    message: () => '',
    causes: () => [
      { type: 'httpcore.ReadTimeout', message: '' },
      { type: 'TimeoutError', message: 'timed out' },
    ],
    stacks: [[...HTTPX, 'search_docs tools/search.py: reply = client.post(URL, json=query)', ...PY_MAIN]],
  },
  {
    cause: 'the prompt has no customer',
    times: 4,
    kind: 'RUN_FAILED',
    language: 'python',
    type: 'KeyError',
    message: () => "'customer_id'",
    stacks: [['build_prompt agent/prompts.py: return TEXT.format(**facts)', ...PY_MAIN]],
  },
  {
    cause: 'a country has no price',
    times: 5,
    kind: 'RUN_FAILED',
    language: 'python',
    type: 'KeyError',
    message: (v) => `'${v.one(['DE', 'FR', 'NL', 'SE'])}'`,
    stacks: [['price_of agent/prices.py: return PRICES[country]', ...PY_MAIN]],
  },
  ...(
    [
      ['the order has no customer', 'customer_id', 'Field required [type=missing, input_value={...}, input_type=dict]'],
      [
        'the amount is negative',
        'amount',
        'Input should be greater than 0 [type=greater_than, input_value=-N, input_type=int]',
      ],
    ] as const
  ).map(([cause, field, text]): Cause => {
    return {
      cause,
      times: 4,
      kind: 'TOOL_FAILED',
      language: 'python',
      tool: 'create_order',
      type: 'pydantic_core._pydantic_core.ValidationError',
      message: (v) => `1 validation error for Order\n${field}\n  ${text.replace('N', String(v.number(500) + 1))}`,
      stacks: [
        [
          'model_validate site-packages/pydantic/main.py: return cls.__pydantic_validator__.validate_python(',
          'parse_order tools/orders.py: return Order.model_validate(data)',
          ...PY_MAIN,
        ],
      ],
    }
  }),
  {
    cause: 'the model answers with half a document',
    times: 5,
    kind: 'RUN_FAILED',
    language: 'python',
    type: 'json.decoder.JSONDecodeError',
    message: (v) =>
      `Unterminated string starting at: line ${v.number(40)} column ${v.number(80)} (char ${v.number(4_000)})`,
    stacks: [
      [
        'raw_decode /usr/lib/python3.12/json/decoder.py: obj, end = self.scan_once(s, idx)',
        'read_plan agent/plan.py: return json.loads(text)',
        ...PY_MAIN,
      ],
    ],
  },
  {
    cause: 'the warehouse database is gone',
    times: 4,
    kind: 'TOOL_FAILED',
    language: 'python',
    tool: 'stock_of',
    type: 'sqlalchemy.exc.OperationalError',
    message: (v) =>
      `(psycopg.OperationalError) connection failed: connection to server at "10.1.${v.number(9)}.${v.number(99)}", port 5432 failed: Connection refused\n(Background on this error at: https://sqlalche.me/e/20/e3q8)`,
    stacks: [
      [
        'connect site-packages/sqlalchemy/engine/default.py: return self.loaded_dbapi.connect(*cargs, **cparams)',
        'stock_of tools/stock.py: with engine.connect() as connection:',
        ...PY_MAIN,
      ],
    ],
  },
  ...(
    [
      [
        'a step waits too long for a person',
        'TimeoutError',
        (v: Vary) => `no decision within ${v.number(600)} seconds`,
      ],
      [
        'a step may not read the mailbox',
        'PermissionError',
        (v: Vary) => `[Errno 13] Permission denied: '/mail/${v.number(99)}'`,
      ],
    ] as const
  ).map(([cause, type, message]): Cause => {
    return {
      cause,
      times: 4,
      kind: 'RUN_FAILED',
      language: 'python',
      type: 'agent.errors.StepError',
      message: (v) => `step ${v.number(12)} failed`,
      causes: (v) => [{ type, message: message(v) }],
      stacks: [['run_plan agent/plan.py: raise StepError(n) from error', '<module> agent/main.py: run_plan(plan)']],
    }
  }),
  {
    cause: 'the sum is wrong',
    times: 4,
    kind: 'RUN_FAILED',
    language: 'python',
    type: 'AssertionError',
    message: () => '',
    stacks: [['check_total agent/checks.py: assert total == expected', ...PY_MAIN]],
  },
  {
    cause: 'the graph runs in circles',
    times: 4,
    kind: 'RUN_FAILED',
    language: 'python',
    type: 'langgraph.errors.GraphRecursionError',
    message: (v) =>
      `Recursion limit of ${v.one([25, 50])} reached without hitting a stop condition. You can increase the limit by setting the recursion_limit config key.`,
    stacks: [
      [
        'stream site-packages/langgraph/pregel/main.py: raise GraphRecursionError(msg)',
        'answer agent/graph.py: return graph.invoke(state)',
        '<module> agent/main.py: answer(question)',
      ],
    ],
  },
  {
    cause: 'the account has too little money',
    times: 5,
    kind: 'TOOL_FAILED',
    tool: 'transfer_money',
    type: 'ToolException',
    message: (v) => `Insufficient funds: balance ${v.number(90)}.${v.number(90)} EUR, needed ${v.number(900)}.00 EUR`,
  },
  {
    cause: 'the recipient is blocked',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'transfer_money',
    type: 'ToolException',
    message: (v) => `Recipient DE${10 + v.number(80)}${v.number(9_999)}${v.number(99_999_999)} is blocked`,
  },
  {
    cause: 'the file server does not answer',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'read_file',
    message: () => 'MCP error -32001: Request timed out',
  },
  {
    cause: 'the model misspells an argument',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'read_file',
    message: (v) =>
      `MCP error -32602: Invalid arguments for tool read_file: unknown argument "${v.one(['pth', 'file', 'name'])}"`,
  },
  {
    cause: 'a city is not supported',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'weather',
    message: (v) => `city "${v.one(['Berlin', 'Sankt Gallen', 'Zürich', 'Köln'])}" is not supported`,
  },
  {
    cause: 'a customer has no contract',
    times: 5,
    kind: 'TOOL_FAILED',
    tool: 'find_contract',
    message: (v) => `Customer ${v.one(['Ada Lovelace', 'Jean Bartik', 'Grace Hopper'])} has no contract`,
  },
  {
    cause: 'a team has spent its budget',
    times: 4,
    kind: 'ERROR_RECORDED',
    type: 'BUDGET',
    message: (v) => `the budget of team ${v.one(['sales', 'support'])} is spent`,
  },
  { cause: 'the refund agent gives up', times: 4, kind: 'RUN_FAILED', agent: 'refunds', message: () => '' },
  { cause: 'the crawler goes silent', times: 4, kind: 'RUN_STALLED', agent: 'crawler', message: () => '' },
  {
    cause: 'a German shop does not know the order',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'bestellung_lesen',
    type: 'NichtGefunden',
    message: (v) => `Die Bestellung „${v.number(99_999)}“ vom ${1 + v.number(28)}.11.2026 wurde nicht gefunden`,
  },
  // In metadata-only mode, only the class is recorded.
  {
    cause: 'the stock service does not answer',
    times: 4,
    kind: 'TOOL_FAILED',
    tool: 'get_stock',
    type: 'TimeoutError',
  },
]

const ROOTS = ['/app', '/srv/agents/current', '/home/ci/build-4711/work'] as const

export function recordedFailures(): RecordedFailure[] {
  return CAUSES.flatMap((cause, place) => {
    return Array.from({ length: cause.times }, (_, index) => recorded(cause, new Vary(place * 31 + index)))
  })
}

function recorded(cause: Cause, vary: Vary): RecordedFailure {
  const { language = 'js', kind, agent = 'shop', tool = null, models, type = null, message, causes, stacks } = cause
  const frames = stacks === undefined ? [] : vary.one(stacks).map((line) => frameOf(line, vary))
  const said = message?.(vary) ?? null
  const error = {
    type,
    message: said === '' ? null : said,
    stack: frames.length === 0 ? null : stackOf[language](frames, type ?? 'Error', said ?? '', vary),
    causes: causes?.(vary) ?? [],
  }
  const model = models === undefined ? null : vary.one(models)
  const failure = { kind, agent, toolName: tool, model, error }
  // The stalled rule records no event, so this failure is not converted.
  return { cause: cause.cause, frames, failure: kind === 'RUN_STALLED' ? failure : throughEvent(failure) }
}

function frameOf(line: string, vary: Vary): Frame {
  const [head = '', source = ''] = line.split(/: ?(.*)/s, 2)
  const [path = '', ...names] = head.split(' ').toReversed()
  const isOwn = /^\w+\/[\w-]+\.(?:ts|py)$/.test(path)
  const isFolder = isOwn || path.includes('node_modules') || path.startsWith('site-packages')
  const root = path.startsWith('site-packages') ? '/usr/lib/python3.12' : vary.one(ROOTS)
  return { name: names.toReversed().join(' '), path: isFolder ? `${root}/${path}` : path, source, isOwn }
}

const stackOf = {
  /** V8: the newest call first. Line numbers differ from release to release. */
  js(frames: Frame[], type: string, message: string, vary: Vary): string {
    const lines = frames.map(({ name, path }) => {
      const place = path.startsWith('<') ? path : `${path}:${1 + vary.number(300)}:${1 + vary.number(80)}`
      return `    at ${name} (${path.startsWith('/') ? `file://${place}` : place})`
    })
    return [`${type}: ${message}`, ...lines].join('\n')
  },
  /** Python: the newest call last. */
  python(frames: Frame[], type: string, message: string, vary: Vary): string {
    const lines = frames.toReversed().map(({ name, path, source }) => {
      return `  File "${path}", line ${1 + vary.number(300)}, in ${name}\n    ${source}`
    })
    return ['Traceback (most recent call last):', ...lines, `${type}: ${message}`, ''].join('\n')
  },
}

const TYPES: Partial<Record<FailureKind, string>> = {
  TOOL_FAILED: 'TOOL_CALL',
  MODEL_FAILED: 'LLM_CALL',
  ERROR_RECORDED: 'ERROR',
  RUN_FAILED: 'SESSION_OUTCOME',
}

/** Writes the failure into an event as clients do, and reads it back. An error is a text, or an object with stack or causes. */
function throughEvent({ kind, agent, toolName, model, error }: SeenFailure): SeenFailure {
  const { type, message, stack, causes } = error
  const whole = { type, message: message ?? '', ...(stack !== null && { stack }), causes }
  const text = [type, message].filter((part) => part !== null).join(': ')
  const said = stack !== null || causes.length > 0 ? whole : kind === 'MODEL_FAILED' ? { type, message } : text
  const payloads: Partial<Record<FailureKind, object>> = {
    TOOL_FAILED: { toolName, error: said },
    MODEL_FAILED: { model, error: said },
    ERROR_RECORDED: { message, code: type },
    RUN_FAILED: { status: 'FAILED', ...(type !== null && { error: text, exception: whole }) },
  }
  const eventType = TYPES[kind] ?? ''
  const event = {
    eventType,
    label: eventType,
    payload: JSON.stringify(payloads[kind]),
    agentId: null,
    agentName: agent,
    parentSpanId: null,
  }
  const seen = toldFailure(event as StoredEvent)
  if (seen === null) throw new Error(`An event tells no failure: ${event.payload}`)
  return seen.failure
}
