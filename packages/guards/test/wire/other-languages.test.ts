/**
 * `tacho record` with programs in other languages, with streamed and whole answers. Languages without a compiler on this
 * machine are skipped. Claude Code and Codex need TACHO_TEST_FRAMEWORKS=1. The tests compare the recorded calls with the
 * answers of the model, and hashes of the bytes that the model sent and the program received.
 */
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { largePackages } from '../../../sdk-integrations/test/large-packages.ts'
import { eventually } from '../../../server/test/setup/eventually.ts'
import { startGuardedServer, type GuardedServer } from '../guarded-server.ts'
import { eventsOf, sha256, startScriptedModel, type AskedOfModel, type ScriptedModel } from './scripted-model.ts'

const PROGRAM = fileURLToPath(new URL('../../../cli/bin/tacho', import.meta.url))
const agents = largePackages('640 MB of packages', '@anthropic-ai/claude-code@2.1.197', '@openai/codex@0.169.0')

/** One answer of the model. No two answers have the same token counts, so recorded calls can be matched with answers. */
interface Sent {
  text: string
  tool: string | undefined
  usage: { promptTokens: number; completionTokens: number; cachedTokens: number }
  sha256: string
}

type Words = Omit<Sent, 'sha256'> & { input: object }
type Encode = (words: Words, number: number, isStream: boolean) => string

const chat: Encode = ({ text, tool, input, usage }, number, isStream) => {
  const call = tool && {
    id: `call_${number}`,
    type: 'function',
    function: { name: tool, arguments: JSON.stringify(input) },
  }
  const common = { id: `c${number}`, created: 1, model: 'gpt-5-2026' }
  const { promptTokens, completionTokens, cachedTokens } = usage
  const tokens = {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  }
  const finish_reason = call ? 'tool_calls' : 'stop'
  if (!isStream) {
    const message = { role: 'assistant', content: text || null, ...(call && { tool_calls: [call] }) }
    return JSON.stringify({
      ...common,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason }],
      usage: tokens,
    })
  }
  const deltas = [
    ...Array.from(text, (letter) => ({ content: letter })),
    ...(call ? [{ tool_calls: [{ index: 0, ...call }] }] : []),
  ]
  const chunk = (delta: object, reason: string | null) => ({
    ...common,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason: reason }],
  })
  return eventsOf(
    [...deltas.map((delta) => chunk(delta, null)), chunk({}, finish_reason), { ...common, choices: [], usage: tokens }],
    'data: [DONE]\n\n',
  )
}

const messages: Encode = ({ text, tool, input, usage }, number, isStream) => {
  const { promptTokens, completionTokens, cachedTokens } = usage
  // Anthropic counts cached tokens separately: `input_tokens` excludes them.
  const tokens = {
    input_tokens: promptTokens - cachedTokens,
    cache_read_input_tokens: cachedTokens,
    output_tokens: completionTokens,
  }
  const id = `toolu_${number}`
  const content = [
    ...(text ? [{ type: 'text', text }] : []),
    ...(tool ? [{ type: 'tool_use', id, name: tool, input }] : []),
  ]
  const stop_reason = tool ? 'tool_use' : 'end_turn'
  const message = { id: `m${number}`, type: 'message', role: 'assistant', model: 'claude', stop_sequence: null }
  if (!isStream) return JSON.stringify({ ...message, content, stop_reason, usage: tokens })
  const blocks = content.flatMap((block, index) => [
    {
      type: 'content_block_start',
      index,
      content_block: block.type === 'text' ? { type: 'text', text: '' } : { ...block, input: {} },
    },
    ...(block.type === 'text'
      ? Array.from(text, (letter) => ({
          type: 'content_block_delta',
          index,
          delta: { type: 'text_delta', text: letter },
        }))
      : [
          {
            type: 'content_block_delta',
            index,
            delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) },
          },
        ]),
    { type: 'content_block_stop', index },
  ])
  return eventsOf([
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, usage: { ...tokens, output_tokens: 1 } },
    },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: completionTokens } },
    { type: 'message_stop' },
  ])
}

const responses: Encode = ({ text, tool, input, usage }, number, isStream) => {
  const { promptTokens, completionTokens, cachedTokens } = usage
  const id = `resp_${number}`
  const said = { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed' }
  const output = [
    ...(text ? [{ ...said, content: [{ type: 'output_text', text, annotations: [] }] }] : []),
    ...(tool
      ? [
          {
            type: 'function_call',
            id: `fc_${number}`,
            call_id: `call_${number}`,
            name: tool,
            arguments: JSON.stringify(input),
          },
        ]
      : []),
  ]
  const tokens = {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
  const response = {
    id,
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'gpt-5-2026',
    output,
    usage: tokens,
  }
  if (!isStream) return JSON.stringify(response)
  return eventsOf([
    { type: 'response.created', response: { id } },
    ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
    { type: 'response.completed', response },
  ])
}

const WORDS = 'It said: “Grüße, 世界”.'
/** The shell tool of each agent, and the input that runs a command. */
const SHELLS: Record<string, (command: string) => object> = {
  Bash: (command) => ({ command, description: 'Runs it.' }),
  exec_command: (cmd) => ({ cmd }),
  look: () => ({ order: 1 }),
}

let server: GuardedServer
let model: ScriptedModel
let directory: string
let tool = 'look'
let sent: Sent[] = []

before(async () => {
  directory = mkdtempSync(path.join(tmpdir(), 'tacho-languages-'))
  server = await startGuardedServer()
  model = await startScriptedModel(answer)
})
after(async () => {
  await Promise.all([server.stop(), model.close()])
  rmSync(directory, { recursive: true, force: true })
})

const ROUTES: readonly [string, Encode][] = [
  ['/chat/completions', chat],
  ['/responses', responses],
  ['/messages', messages],
]

/** Answers with a call of the tool. Once a request contains its result, answers with a text. */
async function answer({ path: asked, body }: AskedOfModel, response: ServerResponse): Promise<void> {
  const encode = ROUTES.find(([route]) => asked.replace(/\?.*/, '').endsWith(route))?.[1]
  if (!encode || asked.includes('count_tokens')) return void response.writeHead(404).end('{}')
  const { stream = false } = JSON.parse(body.toString()) as { stream?: boolean }
  const hasResult = /"role":"tool"|"tool_result"|"function_call_output"/.test(body.toString())
  const number = sent.length + 1
  const usage = { promptTokens: 1_000 + number, completionTokens: 10 + number, cachedTokens: 600 + number }
  const words = { text: hasResult ? WORDS : '', tool: hasResult ? undefined : tool, usage }
  const input = SHELLS[tool]?.('echo seen') ?? {}
  const bytes = Buffer.from(encode({ ...words, input }, number, stream))
  sent.push({ ...words, sha256: sha256(bytes) })
  response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
  // Split the answer inside a character of several bytes.
  const half = bytes.indexOf('ü') + 1
  response.write(bytes.subarray(0, half))
  await setTimeout(20)
  response.end(bytes.subarray(half))
}

async function recorded(name: string, words: readonly string[], variables: Record<string, string> = {}) {
  const env = {
    ...process.env,
    ...server.variables,
    TACHO_STATE_DIR: path.join(directory, 'state'),
    OPENAI_BASE_URL: `${model.origin}/v1`,
    ANTHROPIC_BASE_URL: model.origin,
    OPENAI_API_KEY: 'sk-live-secret',
    ...variables,
  }
  const child = spawn(PROGRAM, ['record', '--agent', name, '--', ...words], { env, cwd: directory })
  child.stdin.end()
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (piece: Buffer) => (output.stdout += piece.toString()))
  child.stderr.on('data', (piece: Buffer) => (output.stderr += piece.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  assert.equal(code, 0, `${output.stdout}${output.stderr}`)
  const ofAgent = async () => (await server.runs()).filter((run) => run.agent.name === name)
  const hasEnded = (runs: readonly { status: string }[]) =>
    runs.length > 0 && runs.every(({ status }) => status !== 'RUNNING')
  await eventually(async () => hasEnded(await ofAgent()), `the run of ${name}`)
  const runs = await ofAgent()
  assert.equal(runs[0]?.status, 'COMPLETED')
  const events = (await Promise.all(runs.map(({ runId }) => server.events(runId)))).flat()
  assert.equal(JSON.stringify(events).includes('sk-live-secret'), false)
  return { output, events }
}

/** Asserts that each answer of the model is recorded as one model call with its tokens, text and tool, and no other call is. */
function assertSameAsSent(events: Awaited<ReturnType<typeof recorded>>['events']): void {
  const calls = events.filter(({ eventType }) => eventType === 'LLM_CALL').map(({ payload }) => payload)
  const now = calls.map(({ usage, output, toolCalls }) => {
    const { promptTokens, completionTokens, cachedTokens } = usage as Sent['usage']
    const { content = '' } = (output ?? {}) as { content?: string | { text?: string }[] | null }
    const text = Array.isArray(content) ? content.map((piece) => piece.text ?? '').join('') : (content ?? '')
    const names = ((toolCalls ?? []) as { name: string }[]).map(({ name }) => name)
    return { text, tool: names.join() || undefined, usage: { promptTokens, completionTokens, cachedTokens } }
  })
  const byTokens = (a: Omit<Sent, 'sha256'>, b: Omit<Sent, 'sha256'>) => a.usage.promptTokens - b.usage.promptTokens
  assert.deepEqual(now.toSorted(byTokens), sent.map(({ sha256: _, ...words }) => words).toSorted(byTokens))
  const results = events.filter(({ eventType, payload }) => eventType === 'TOOL_CALL' && payload['toolName'] === tool)
  const asked = sent.filter((one) => one.tool !== undefined)
  assert.ok(asked.length > 0 && asked.length < sent.length)
  assert.equal(results.length, asked.length, 'results')
  for (const { payload } of results) assert.match(JSON.stringify(payload['output']), /seen/)
}

/** In each language, the program reads two bodies from files, sends them in turn, and prints the hash of each answer. */
const GO = `package main
import ("bytes"; "crypto/sha256"; "fmt"; "io"; "net/http"; "os")
func main() {
  for _, file := range os.Args[1:] {
    body, _ := os.ReadFile(file)
    request, _ := http.NewRequest("POST", os.Getenv("OPENAI_BASE_URL")+"/chat/completions", bytes.NewReader(body))
    request.Header.Set("content-type", "application/json")
    request.Header.Set("authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
    reply, err := http.DefaultClient.Do(request)
    if err != nil { panic(err) }
    answer, _ := io.ReadAll(reply.Body)
    fmt.Printf("%x\\n", sha256.Sum256(answer))
  }
}
`
const JAVA = `import java.net.*; import java.net.http.*; import java.nio.file.*; import java.security.*; import java.util.*;
public class Ask {
  public static void main(String[] files) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (String file : files) {
      HttpRequest request = HttpRequest.newBuilder(URI.create(System.getenv("OPENAI_BASE_URL") + "/chat/completions"))
        .header("content-type", "application/json").header("authorization", "Bearer " + System.getenv("OPENAI_API_KEY"))
        .POST(HttpRequest.BodyPublishers.ofFile(Path.of(file))).build();
      byte[] answer = client.send(request, HttpResponse.BodyHandlers.ofByteArray()).body();
      System.out.println(HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(answer)));
    }
  }
}
`
/** Rust's standard library has no HTTP client. The program uses HTTP/1.0, where an answer ends with its connection. */
const RUST = `use std::io::{Read, Write};
fn main() {
  let var = |name: &str| std::env::var(name).unwrap();
  let base = var("OPENAI_BASE_URL");
  let (host, path) = base.trim_start_matches("http://").split_once('/').unwrap();
  for file in std::env::args().skip(1) {
    let body = std::fs::read(file).unwrap();
    let mut socket = std::net::TcpStream::connect(host).unwrap();
    write!(socket, "POST /{path}/chat/completions HTTP/1.0\\r\\nhost: {host}\\r\\ncontent-type: application/json\\r\\nauthorization: Bearer {}\\r\\ncontent-length: {}\\r\\n\\r\\n",
      var("OPENAI_API_KEY"), body.len()).unwrap();
    socket.write_all(&body).unwrap();
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).unwrap();
    let head = reply.windows(4).position(|four| four == b"\\r\\n\\r\\n").unwrap();
    let mut sum = std::process::Command::new("sha256sum").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    sum.stdin.take().unwrap().write_all(&reply[head + 4..]).unwrap();
    println!("{}", &String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap()[..64]);
  }
}
`
const RUBY = `require 'net/http'; require 'digest'
ARGV.each do |file|
  headers = { 'content-type' => 'application/json', 'authorization' => "Bearer #{ENV['OPENAI_API_KEY']}" }
  answer = Net::HTTP.post(URI(ENV['OPENAI_BASE_URL'] + '/chat/completions'), File.binread(file), headers)
  puts Digest::SHA256.hexdigest(answer.body)
end
`
const PERL = `use HTTP::Tiny; use Digest::SHA 'sha256_hex';
for my $file (@ARGV) {
  open(my $in, '<:raw', $file); local $/; my $body = <$in>;
  my $headers = { 'content-type' => 'application/json', authorization => "Bearer $ENV{OPENAI_API_KEY}" };
  my $answer = HTTP::Tiny->new->post("$ENV{OPENAI_BASE_URL}/chat/completions", { content => $body, headers => $headers });
  print sha256_hex($answer->{content}), "\\n";
}
`
const SHELL = `for file in "$@"; do
  curl -sS "$OPENAI_BASE_URL/chat/completions" -H 'content-type: application/json' -H "authorization: Bearer $OPENAI_API_KEY" \\
    --data-binary "@$file" | sha256sum | cut -d' ' -f1
done
`

const has = (program: string, ...args: string[]) => spawnSync(program, args, { stdio: 'ignore' }).status === 0

function built(program: string, compiler: string, ...args: string[]): string[] {
  const { status, stderr } = spawnSync(compiler, args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return [program]
}

const LANGUAGES: readonly {
  language: string
  file: string
  source: string
  isHere: () => boolean
  /** Compiles the file if needed, and returns the command that runs it. */
  command: (file: string) => string[]
}[] = [
  {
    language: 'Go',
    file: 'ask.go',
    source: GO,
    isHere: () => has('go', 'version'),
    command: (file) => built(`${file}.program`, 'go', 'build', '-o', `${file}.program`, file),
  },
  {
    language: 'Rust',
    file: 'ask.rs',
    source: RUST,
    isHere: () => has('rustc', '--version') && has('sha256sum', '--version'),
    command: (file) => built(`${file}.program`, 'rustc', '-o', `${file}.program`, file),
  },
  {
    language: 'Java',
    file: 'Ask.java',
    source: JAVA,
    isHere: () => has('javac', '-version'),
    command: (file) => ['java', file],
  },
  {
    language: 'Ruby',
    file: 'ask.rb',
    source: RUBY,
    isHere: () => has('ruby', '--version'),
    command: (file) => ['ruby', file],
  },
  {
    language: 'Perl',
    file: 'ask.pl',
    source: PERL,
    isHere: () => has('perl', '-MHTTP::Tiny', '-MDigest::SHA', '-e', '1'),
    command: (file) => ['perl', file],
  },
  {
    language: 'shell',
    file: 'ask.sh',
    source: SHELL,
    isHere: () => has('curl', '--version'),
    command: (file) => ['sh', file],
  },
]

function requestOf(isStream: boolean, isSecond: boolean): string {
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"order":1}' } }
  return JSON.stringify({
    model: 'gpt-5',
    ...(isStream && { stream: true, stream_options: { include_usage: true } }),
    messages: [
      { role: 'user', content: 'Look – and say “hello”.' },
      ...(isSecond
        ? [
            { role: 'assistant', content: null, tool_calls: [call] },
            { role: 'tool', tool_call_id: 'call_1', content: 'seen' },
          ]
        : []),
    ],
  })
}

for (const { language, file, source, isHere, command } of LANGUAGES) {
  test(
    `a program in ${language} is recorded as the model answered, streamed and not, and no byte changes`,
    {
      skip: !isHere() && `needs ${language}`,
      timeout: 600_000,
    },
    async () => {
      tool = 'look'
      const program = path.join(directory, file)
      writeFileSync(program, source)
      const words = command(program)
      for (const isStream of [false, true]) {
        const bodies = [requestOf(isStream, false), requestOf(isStream, true)]
        const files = bodies.map((body, index) => {
          const name = path.join(directory, `${file}-${index}.json`)
          writeFileSync(name, body)
          return name
        })
        sent = []
        model.asked.length = 0
        const { output, events } = await recorded(`${language} ${isStream}`, [...words, ...files])
        assert.deepEqual(
          model.asked.map((one) => one.sha256),
          bodies.map(sha256),
          'requests',
        )
        assert.deepEqual(
          output.stdout.trim().split('\n'),
          sent.map((one) => one.sha256),
          'answers',
        )
        assertSameAsSent(events)
      }
    },
  )
}

const executable = (pattern: string) => globSync(path.join(agents.folder, 'node_modules', pattern))[0] ?? ''

test('Claude Code is recorded as the model answered', { skip: agents.skip, timeout: 600_000 }, async () => {
  ;[tool, sent] = ['Bash', []]
  const home = mkdtempSync(path.join(directory, 'home-'))
  const words = ['-p', 'Go on.', '--allowedTools', 'Bash', '--output-format', 'stream-json', '--verbose']
  const { output, events } = await recorded('claude', [executable('@anthropic-ai/claude-code-*/claude'), ...words], {
    HOME: home,
    ANTHROPIC_API_KEY: 'sk-live-secret',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  })
  assert.ok(output.stdout.includes(WORDS.slice(0, 8)), output.stdout)
  assertSameAsSent(events)
})

test('Codex is recorded as the model answered', { skip: agents.skip, timeout: 600_000 }, async () => {
  ;[tool, sent] = ['exec_command', []]
  const home = mkdtempSync(path.join(directory, 'home-'))
  mkdirSync(path.join(home, '.codex'))
  const settings = ['model = "gpt-5"', 'approval_policy = "never"', 'sandbox_mode = "danger-full-access"']
  writeFileSync(path.join(home, '.codex/config.toml'), `${settings.join('\n')}\n`)
  const codex = `exec ${executable('@openai/codex-*/vendor/*/bin/codex')} -c "openai_base_url=\\"$OPENAI_BASE_URL\\"" exec --skip-git-repo-check 'Go on.'`
  const { output, events } = await recorded('codex', ['sh', '-c', codex], {
    HOME: home,
    CODEX_API_KEY: 'sk-live-secret',
  })
  assert.ok(output.stdout.includes(WORDS.slice(0, 8)), output.stdout)
  assertSameAsSent(events)
})
