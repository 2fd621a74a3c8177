/** Writes the TypeScript of the pages to a project outside this clone, with the packed SDK, as a user would have it. */
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
/** Pages whose packages are too large to install everywhere. `guides.test.ts` compiles NestJS. */
const NOT_INSTALLED = ['claude-agent-sdk', 'servers']
/** Code that fragments need: the guide to recording shows single calls of one run. */
const PRELUDE: Record<string, string> = {
  'docs/recording.md': `import { Tacho } from '@tacho/sdk'\nconst tacho = new Tacho()\nconst run = tacho.startRun()\n`,
}

/** `application`: its programs name their files and are bundled. `frameworks`: with the frameworks. `alone`: only the SDK. */
export type Project = 'alone' | 'application' | 'frameworks'

export const pages = globSync(['README.md', 'docs/**/*.md', '{packages/sdk,sdks/python}/README.md'], {
  cwd: ROOT,
  exclude: ['docs/decisions/**', '**/node_modules/**'],
}).map((file) => {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  const snippets = Array.from(text.matchAll(/^```(?:ts|typescript)\n(.*?)^```$/gms), ([, code = '']) => code)
  return { file, name: path.basename(file, '.md'), text, snippets }
})

/** Writes every block of a project to `folder`, and returns the names of the files. */
export function writeBlocks(folder: string, wanted: Project): string[] {
  mkdirSync(folder, { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  return pages.flatMap(({ file, name, snippets }) => {
    const isApp = snippets.every((code) => /^\/\/ \S+\.tsx?\n/.test(code))
    const project: Project = isApp ? 'application' : file.startsWith('docs/integrations/') ? 'frameworks' : 'alone'
    if (project !== wanted || NOT_INSTALLED.includes(name)) return []
    const prelude = PRELUDE[file]
    const programs = prelude === undefined ? snippets : [prelude + snippets.join('')]
    return programs.map((code, number) => {
      const title = `${file.replace(/\.md$/, '').replaceAll('/', '-')}-${number + 1}.ts`
      const target = isApp ? (/^\/\/ (\S+)/.exec(code)?.[1] ?? title) : title
      mkdirSync(path.dirname(path.join(folder, target)), { recursive: true })
      // `export {}` makes each file a module. Otherwise the scripts would share their names.
      writeFileSync(path.join(folder, target), `${code}\nexport {}\n`)
      return target
    })
  })
}

/** Installs the packed SDK in a project, and links those packages of this clone that `takes` accepts. */
export function installSdk(folder: string, tarball: string, takes: (name: string) => boolean): void {
  const modules = path.join(folder, 'node_modules')
  const sdk = path.join(modules, '@tacho/sdk')
  mkdirSync(sdk, { recursive: true })
  execFileSync('tar', ['-xzf', tarball, '-C', sdk, '--strip-components=1'])
  const installed = path.join(ROOT, 'node_modules')
  for (const name of readdirSync(installed)) {
    if (name !== '@tacho' && !name.startsWith('.') && takes(name))
      symlinkSync(path.join(installed, name), path.join(modules, name))
  }
}

/** Each Node on the PATH and in the folders of TACHO_TEST_RUNTIMES, by version. The Node of this process comes first. */
export function installedNodes(): Map<string, string> {
  const nodes = new Map<string, string>()
  for (const folder of [
    path.dirname(process.execPath),
    ...(process.env['TACHO_TEST_RUNTIMES'] ?? '').split(path.delimiter),
    ...(process.env['PATH'] ?? '').split(path.delimiter),
  ]) {
    const command = path.join(folder, 'node')
    try {
      const version = execFileSync(command, ['--version'], { encoding: 'utf8', stdio: 'pipe' }).trim()
      if (!nodes.has(version)) nodes.set(version, command)
    } catch {
      // This folder has no Node.
    }
  }
  return nodes
}

/** An installed Node that cannot run TypeScript, if any: users of Node 20 compile. */
export const OLD_NODE = [...installedNodes()].find(([version]) => Number(/\d+/.exec(version)?.[0]) < 22)
