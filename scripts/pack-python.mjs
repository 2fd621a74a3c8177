// Makes the wheel and the source distribution of the Python SDK, from a copy of its sources with the version of this build.
import { execFileSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { versionOfBuild } from './build-program.mjs'
import { root } from './build.mjs'

/** Packages that build and check ours. */
const TOOLS = ['setuptools==80.9.0', 'twine==7.0.0']
const ENVIRONMENT = path.join(root, '.cache', `python-${TOOLS.join('+')}`)
const BUILD = `import sys
from setuptools import build_meta
folder = sys.argv[1]
build_meta.build_sdist(folder)
# A wheel has no comments, as the package of TypeScript, and no docstrings of files and private functions; the source distribution has
# them. Lines keep their numbers.
import ast, pathlib, tokenize
def is_private(node):
    return isinstance(node, ast.Module) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith('_')
for file in pathlib.Path('src').rglob('*.py'):
    with tokenize.open(file) as opened: lines = opened.read().split('\\n')
    with open(file, 'rb') as opened:
        for token in tokenize.tokenize(opened.readline):
            if token.type == tokenize.COMMENT:
                lines[token.start[0] - 1] = lines[token.start[0] - 1][:token.start[1]].rstrip()
    for node in ast.walk(ast.parse('\\n'.join(lines))):
        if file.name != '__init__.py' and is_private(node) and len(node.body) > 1 and ast.get_docstring(node) is not None:
            lines[node.body[0].lineno - 1:node.body[0].end_lineno] = [''] * (node.body[0].end_lineno - node.body[0].lineno + 1)
    file.write_text('\\n'.join(lines), encoding='utf-8')
build_meta.build_wheel(folder)`

/** A version in the form of PEP 440: `0.1.0-dev+23c70e77` becomes `0.1.0.dev0+23c70e77`. */
export const pythonVersion = (version) => version.replace('-dev', '.dev0')

/** The interpreter with these tools. Installs them once. */
export function toolsForPython() {
  if (!existsSync(ENVIRONMENT)) {
    const partial = `${ENVIRONMENT}.${process.pid}`
    execFileSync('python3', ['-m', 'venv', partial])
    execFileSync(path.join(partial, 'bin/python'), [
      '-m',
      'pip',
      'install',
      '-q',
      '--disable-pip-version-check',
      ...TOOLS,
    ])
    renameSync(partial, ENVIRONMENT)
  }
  return path.join(ENVIRONMENT, 'bin/python')
}

/** Writes the wheel and the source distribution to `folder`. Returns their paths. */
export function packPython(folder) {
  const python = toolsForPython()
  const version = pythonVersion(versionOfBuild())
  const staged = mkdtempSync(path.join(tmpdir(), 'tacho-python-'))
  const own = path.join(staged, 'out')
  try {
    for (const part of ['src', 'README.md', 'pyproject.toml']) {
      cpSync(path.join(root, 'sdks/python', part), path.join(staged, part), {
        recursive: true,
        filter: (file) => !/__pycache__|\.egg-info/.test(file),
      })
    }
    cpSync(path.join(root, 'LICENSE'), path.join(staged, 'LICENSE'))
    for (const [file, form] of [
      ['pyproject.toml', /^version = ".*"/m],
      ['src/tacho_sdk/__init__.py', /^__version__ = ".*"/m],
    ]) {
      const text = readFileSync(path.join(staged, file), 'utf8')
      writeFileSync(
        path.join(staged, file),
        text.replace(form, (line) => line.replace(/".*"/, `"${version}"`)),
      )
    }
    mkdirSync(own)
    execFileSync(python, ['-c', BUILD, own], { cwd: staged, stdio: 'pipe' })
    return readdirSync(own).map((name) => {
      cpSync(path.join(own, name), path.join(folder, name))
      return path.join(folder, name)
    })
  } finally {
    rmSync(staged, { recursive: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder] = process.argv.slice(2)
  const usage =
    'Usage: scripts/node scripts/pack-python.mjs <folder>\nWrites the wheel and the source distribution of the Python SDK there, and prints their paths.'
  if (folder === '--help' || folder === '-h') {
    console.log(usage)
  } else if (!folder || folder.startsWith('-')) {
    console.error(usage)
    process.exitCode = 2
  } else {
    console.log(packPython(path.resolve(folder)).join('\n'))
  }
}
