// Checks that no instruction downloads a package, image or chart under one of our names that we have not published: a stranger
// could publish it. Also checks that no value or function has a name that is too common to search for.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Packages and images that we have published. An owner who publishes one adds its name here; then the documents may
 * name it.
 */
const PUBLISHED = { npm: [], PyPI: [], Docker: [], Homebrew: [], Helm: [], others: [] }

/** Patterns of commands that download by name. Each matches up to the first name. */
const FETCHERS = {
  npm: [
    /\b(?:npx|bunx|npm (?:exec|x|install|i|add|create|init)|pnpm (?:add|dlx|install|create)|yarn (?:global add|add|dlx|create)|bun (?:add|install|x|create))\s/g,
    /\bdeno (?:add|install|run|x)\s/g,
    /(?:\bnpm:|\bjsr:|\/\/(?:esm\.sh|unpkg\.com|cdn\.jsdelivr\.net\/npm|cdn\.skypack\.dev)\/)/g,
  ],
  PyPI: [
    /\b(?:pip[\d.]* (?:install|download)|uv (?:add|pip install|tool install|tool run)|uvx|uv run --with|pipx (?:run|install)|poetry add|pdm add|rye add|conda install)\s/g,
    // A line of a requirements file, or of a list of dependencies.
    /(?<=^|["'])(?=tacho[-_]?\w*(?:\[\w+\])?\s*[=~>]=)/gm,
  ],
  Docker: [
    /\b(?:docker|podman|nerdctl|buildah) (?:image )?(?:pull|run|create|from)\s|\bskopeo copy\s|\bghcr\.io\/|\bdocker\.io\//g,
    /^\s*(?:image|repository):\s|^FROM\s/gm,
  ],
  Homebrew: [/\bbrew (?:install|tap|upgrade|reinstall)\s/g],
  Helm: [/\bhelm (?:repo add|pull|install|upgrade|template)\s/g],
  others: [/\b(?:cargo|go|gem|apt|apt-get|apk|dnf|yum|snap|choco|scoop|winget|nix-env) (?:install|add|get)\s/g],
}

/** One of our names as an argument of these commands, with an optional prefix and version. */
const NAME = /^(?:npm:|jsr:|docker:\/\/)?(@?tacho(?:[-_][\w-]+)?(?:\/[\w-]+)?)(?:[@:=~<>![].*)?$/

/**
 * The commands in a text that would download one of our names from a registry where we have not published it.
 * @param {string} text
 * @returns {{ line: number, command: string, name: string, registry: string }[]}
 */
export function strangersIn(text) {
  return Object.entries(FETCHERS).flatMap(([registry, forms]) =>
    forms.flatMap((form) =>
      [...text.matchAll(form)].flatMap((match) => {
        const [rest = ''] = text.slice(match.index + match[0].length).split(/[\n`;|&#)]|\\n/, 1)
        const names = namesIn(registry, match[0].trim(), rest.trim().split(/[\s'",]+/))
        const foreign = names.find((name) => !PUBLISHED[registry].includes(name) && !isBuiltHere(registry, name, text))
        const line = text.slice(0, match.index).split('\n').length
        return foreign === undefined
          ? []
          : [{ line, command: `${match[0].trim()} ${rest.trim()}`, name: foreign, registry }]
      }),
    ),
  )
}

function namesIn(registry, command, words) {
  const isFirstOurs = /^helm (?:install|upgrade|template|repo)/.test(command)
  // The first word after these commands is a name that the user chooses for a release or a repository.
  const candidates =
    isFirstOurs && !command.endsWith('add') ? words.filter((word) => !word.startsWith('-')).slice(1) : words
  return candidates.flatMap((word, index) => {
    // These options name a container, a network or a volume, not an image.
    if (registry === 'Docker' && /^(?:--name|--hostname|--network|-v|--volume)$/.test(candidates[index - 1] ?? ''))
      return []
    const [, name] = NAME.exec(word) ?? []
    return name === undefined || /\.(?:tgz|whl|tar\.gz)$/.test(word) ? [] : [name]
  })
}

function isBuiltHere(registry, name, text) {
  return (
    registry === 'Docker' &&
    new RegExp(`(?:docker|podman|buildah) (?:buildx )?(?:build|bud) .*(?:-t|--tag) ${name}\\b`).test(text)
  )
}

/** Files without instructions for users: examples that hooks must refuse, old documents, and tests of this check. */
const NO_INSTRUCTIONS =
  /^(CHANGELOG\.md|package-lock\.json|docs\/decisions\/|scripts\/check-names|scripts\/test\/check-names|packages\/guards\/test\/)/

/**
 * Words that are too common to be searched for. Members of rows, payloads and interfaces may have these names, because
 * programs read them.
 */
const COMMON = 'told|said|kept|given|found|own|look|bring|hold|few|that|rest|part|fit|bars'

/** Patterns of declarations, the first parameter, an arrow's parameter, and the remainder of an object or list. */
const DECLARED = {
  ts: new RegExp(
    String.raw`\b(?:const|let|function\*?|class)\s+(${COMMON})\b(?! \})|(?<![\w.])\(?(${COMMON})\)? =>|\.\.\.(${COMMON})(?= [}\]]|\) =>|: )`,
    'g',
  ),
  py: new RegExp(
    String.raw`\bdef (${COMMON})\(|(?<![\w.])(${COMMON})(?:: [^=\n]+)? = |\bfor (${COMMON}) in |\blambda (${COMMON})\b`,
    'g',
  ),
}

/** Names that are not yet changed, by file. Do not add any. */
const FORMER = new Set([
  'packages/cli/src/runs/usage-points.ts',
  'packages/cli/src/tenants/keys.ts',
  'packages/guards/src/wire/recorded-exchange.ts',
  'packages/policy/src/history/recorded-history.ts',
  'packages/policy/src/history/run-history.ts',
  'packages/server/src/http/runs/usage.ts',
  'packages/server/src/storage/runs/usage.ts',
  'packages/server/src/storage/sql/runs/usage-points.ts',
  'sdks/python/src/tacho_sdk/integrations/langchain.py',
  'sdks/python/src/tacho_sdk/integrations/openai_agents_tools.py',
  'sdks/python/src/tacho_sdk/integrations/pydantic_ai.py',
])

/** The declarations in a source file whose names cannot be searched for. */
export function commonNamesIn(text, ending) {
  return [...text.matchAll(ending === 'py' ? DECLARED.py : DECLARED.ts)].flatMap(({ 0: declared, index }) => {
    const before = text.slice(0, index).split('\n')
    const isComment = /^\s*(?:\*|\/\/|\/\*|#)/.test(before.at(-1))
    return isComment ? [] : [{ line: before.length, declared: declared.trim() }]
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url))
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
    .trim()
    .split('\n')
  for (const file of files.filter((name) => !NO_INSTRUCTIONS.test(name))) {
    for (const { line, command, name, registry } of strangersIn(readFileSync(path.join(root, file), 'utf8'))) {
      console.error(`${file}:${line}: "${command}" would fetch a stranger's: ${name} is not ours (${registry})`)
      process.exitCode = 1
    }
  }
  for (const file of files) {
    const [, ending] = /^(?:packages\/[^/]+|sdks\/python)\/src\/.*\.(tsx?|py)$/.exec(file) ?? []
    if (ending === undefined || FORMER.has(file)) continue
    for (const { line, declared } of commonNamesIn(readFileSync(path.join(root, file), 'utf8'), ending)) {
      console.error(`${file}:${line}: "${declared}": give it two words, such as storedRun or toldFailures`)
      process.exitCode = 1
    }
  }
}
