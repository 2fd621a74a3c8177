/** The Claude Agent SDK (matrix.ts), with scripted messages and hooks, because its binary has 364 MB. */
import { guardQuery } from '@tacho/sdk/claude-agent-sdk'
import { claudeCode, type QueryOptions } from '../../src/claude-code.ts'
import { lifeOf, type How } from './life.ts'
import { one, retried, testMatrix, type Guarded, type Stage } from './matrix.ts'

type Input = Record<string, unknown>

interface Changed {
  updatedInput?: Input
  decision?: { behavior: string; updatedInput: Input }
}

async function run(stage: Stage, options: QueryOptions = {}): Promise<void> {
  const query = guardQuery(
    claudeCode(stage.model.url, (_name, input) => stage.act(input)),
    stage.tacho,
  )
  for await (const _ of query({ prompt: 'Act', options }));
}

const plain = (sent?: unknown): Guarded => one((stage) => run(stage), sent)

/** A hook of the host that changes the input. */
const changing = (event: string, output: (input: Input) => Changed): Guarded =>
  one(
    (stage) => {
      const hook = async (given: object) => ({
        hookSpecificOutput: { hookEventName: event, ...output((given as { tool_input: Input }).tool_input) },
      })
      return run(stage, { hooks: { [event]: [{ hooks: [hook] }] } })
    },
    { order: 7 },
    { order: 7, changed: true },
  )

/** A host passes an AbortController to Claude Code, not a signal. */
function play(stage: Stage, { signal }: How): Promise<void> {
  const abortController = new AbortController()
  signal?.addEventListener('abort', () => abortController.abort())
  return run(stage, { abortController })
}

// The scripted Claude Code does not validate arguments, and starts no subagents.
const { 'gave up': gaveUp, forked } = lifeOf({ play, streams: false })

const OF_SERVER =
  'Claude Code sends the arguments of the model to the MCP server, whose schema changes them after the decision. Let the schema only check, or use `tacho.guard` inside the tool.'

testMatrix({
  id: 'typescript-claude-agent-sdk',
  name: 'Claude Agent SDK',
  page: 'claude-agent-sdk.md',
  tested: '@anthropic-ai/claude-agent-sdk 0.3.330, by a script of its messages and hooks',
  ways: {
    'nested model': plain({ lines: [{ order: 1 }, { order: 2 }], to: { name: 'Ada' } }),
    'raw JSON schema': plain({ order: 7, more: [1] }),
    default: { cannot: OF_SERVER },
    coercion: { cannot: OF_SERVER },
    trim: { cannot: OF_SERVER },
    alias: { cannot: OF_SERVER },
    'extra keys': plain({ order: 7, force: true }),
    streaming: one((stage) => run(stage, { includePartialMessages: true })),
    'parallel calls': {
      ...plain(),
      sent: [{ order: 1 }, { order: 2 }, { order: 3 }],
      got: [{ order: 1 }, { order: 2 }, { order: 3 }],
    },
    retry: retried((stage) => run(stage)),
    'MCP server': plain(),
    'gave up': gaveUp,
    forked,
    cut: {
      cannot: 'Claude Code calls its hook before the answer has ended, so the hook judges the calls read so far.',
    },
    'changed by a hook': changing('PreToolUse', (input) => ({ updatedInput: { ...input, changed: true } })),
    'human in the loop': changing('PermissionRequest', (input) => ({
      decision: { behavior: 'allow', updatedInput: { ...input, changed: true } },
    })),
  },
  outside: [
    'A hook in a settings file (of the user, the repository or a plugin), or a `permissionPromptToolName`, that changes the input: Claude Code runs it without asking again. The call is recorded with the input that ran, as an ERROR event, an issue record `INPUT_CHANGED` and another hash than that of its approval. Set `settingSources: []` to load no such file.',
    'A settings file with `disableAllHooks`: each tool that answers without its hook is an ERROR event and an issue record `TOOL_NOT_JUDGED`.',
    'Sessions that `startup` or `prewarm` begin: only those of the guarded `query` are guarded.',
    'Tools of the provider, such as a web search on its servers.',
  ],
})
