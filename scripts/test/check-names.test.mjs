/** Instructions and names that the check of names refuses, and others that it accepts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commonNamesIn, strangersIn } from '../check-names.mjs'

test('each way to fetch something under one of our names is found, behind flags and other words', () => {
  for (const command of [
    'npx tacho serve',
    'npx -y tacho@latest runs list',
    'npx --package @tacho/sdk x',
    'npx tacho-sdk',
    'npm exec -- tacho login',
    'npm i ai zod @tacho/sdk',
    'npm install --save-dev "tacho"',
    'npm create tacho my-agent',
    'pnpm dlx tacho',
    'yarn global add tacho',
    'bunx tacho',
    'bun add @tacho/sdk',
    'deno add npm:@tacho/sdk',
    "import { Tacho } from 'npm:@tacho/sdk@0.1.0'",
    "import { Tacho } from 'https://esm.sh/@tacho/sdk'",
    'pip install tacho',
    'python -m pip install -U openai tacho-sdk',
    'pip3 install "tacho_sdk[langchain]>=0.1"',
    'uvx tacho',
    'uv add tacho-sdk',
    'uv tool install tacho',
    'uv run --with tacho-sdk main.py',
    'pipx run tacho',
    'tacho-sdk==0.1.0',
    'dependencies = ["openai", "tacho-sdk>=0.1"]',
    'docker run -d --name tacho -p 4680:4680 tacho',
    'docker pull tacho/tacho:latest',
    'podman run tacho/server',
    '    image: tacho/tacho:0.1.0',
    'FROM tacho/tacho:0.1.0',
    'docker pull ghcr.io/tacho/tacho',
    'brew install tacho',
    'brew tap tacho/tap',
    'helm repo add tacho https://tacho.github.io/charts',
    'helm install my-tacho tacho/tacho --set x=y',
    'cargo install tacho',
    'go install tacho@latest',
    'apt-get install -y tacho',
    'winget install tacho',
  ]) {
    assert.equal(strangersIn(`Text before.\n${command}\n`)[0]?.line, 2, command)
    assert.ok(strangersIn(`console.log('Run \`${command}\`.')`).length > 0 || /^(tacho|FROM| )/.test(command), command)
  }
})

test('paths, files, images that the text builds, and other packages pass', () => {
  for (const text of [
    'npx ./tacho-0.1.0.tgz serve',
    'npm install -g ./tacho-0.1.0.tgz',
    'npm install /tmp/tacho-sdk/tacho-sdk-*.tgz openai zod',
    'pip install ./sdks/python fastapi',
    'pip install tacho_sdk-0.1.0-py3-none-any.whl',
    'npm install openai  # beside @tacho/sdk',
    'npx -y @modelcontextprotocol/server-filesystem /home/me/notes',
    'docker build -t tacho .\ndocker run -d --name tacho -v tacho-data:/data tacho',
    'image: registry.example.com/tacho:0.1.0',
    'helm install tacho release/tacho-chart-0.1.0.tgz --set publicUrl=https://tacho.example.com',
    'helm upgrade --install tacho ./chart',
    'tacho mcp-guard -- npx some-server',
    './tacho runs list',
  ]) {
    assert.deepEqual(strangersIn(text), [], text)
  }
})

test('a declared name that cannot be searched for is found; members and comments are none', () => {
  for (const text of [
    'const found = rows',
    'for (const part of parts) {',
    'function look() {}',
    'rows.map((own) => own)',
  ])
    assert.equal(commonNamesIn(text, 'ts').length, 1, text)
  for (const text of [
    'row.found = 1',
    '// The function that reads it',
    '{ said: text }',
    'const { kept } = row',
    'tokenPart',
  ])
    assert.deepEqual(commonNamesIn(text, 'ts'), [], text)
  for (const text of ['given = 1', 'def told(self):', 'for part in parts:'])
    assert.equal(commonNamesIn(text, 'py').length, 1, text)
  for (const text of ['call(given=1)', 'row.kept = 1', '# def told(self)'])
    assert.deepEqual(commonNamesIn(text, 'py'), [], text)
})
