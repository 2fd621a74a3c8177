/** The proxy before a scripted model, with a service in memory. */
import { fakeTacho, type FakeOptions, type FakeTacho } from '../../../sdk/src/testing/fake-tacho.ts'
import { completePath } from '../../src/wire/clients.ts'
import { startProxy, type Door, type Proxy } from '../../src/wire/proxy.ts'
import { WireRecorder, type GuardSettings } from '../../src/wire/wire-recorder.ts'
import { startScriptedModel, type Script, type ScriptedModel } from './scripted-model.ts'

export interface RecordedWire extends AsyncDisposable {
  readonly model: ScriptedModel
  readonly fake: FakeTacho
  readonly recorder: WireRecorder
  readonly proxy: Proxy
  readonly routes: Map<string, URL>
  /** The base address for a client, such as `baseOf('openai', '/v1')`. */
  baseOf(route: string, path?: string): string
  /** Ends the program. @returns its events. */
  end(): ReturnType<FakeTacho['events']>
}

const SECRET = 'a-secret-of-the-run'

export async function startRecordedWire(
  script: Script,
  { door = {}, guarded, ...options }: FakeOptions & { door?: Partial<Door>; guarded?: GuardSettings } = {},
): Promise<RecordedWire> {
  const model = await startScriptedModel(script)
  const fake = fakeTacho(options)
  const recorder = new WireRecorder(fake.tacho, { agentName: 'program' }, { guard: guarded })
  const routes = new Map(['openai', 'anthropic', 'gemini', 'azure'].map((route) => [route, new URL(model.origin)]))
  const isGuarded = guarded !== undefined
  const whole: Door = { routes, completePath, isGuarded, observe: (request) => recorder.observe(request), ...door }
  const proxy = await startProxy({ enter: (key) => (key === SECRET ? whole : 404) })
  return {
    model,
    fake,
    recorder,
    proxy,
    routes,
    baseOf: (route, path = '') => `${proxy.origin}/${SECRET}/${route}${path}`,
    async end() {
      await recorder.end('COMPLETED', {})
      return fake.events()
    },
    async [Symbol.asyncDispose]() {
      await proxy.close()
      await model.close()
      await fake.close()
    },
  }
}
