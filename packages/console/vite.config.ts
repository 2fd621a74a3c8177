import tailwindcss from '@tailwindcss/vite'
import { POLICY_SETS } from '@tacho/contract/engine/words.ts'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { parse } from 'yaml'

const EXAMPLES = path.join(import.meta.dirname, '../../examples/policies')
const read = (file: string): unknown => parse(readFileSync(path.join(EXAMPLES, file), 'utf8'))
/** For the page of ready sets: a browser has no reader of YAML. */
const READY_SETS = Object.entries(POLICY_SETS).map(([name, about]) => ({
  name,
  about,
  ...(read(`${name}.yaml`) as object),
  examples: read(`${name}.test.yaml`),
}))

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwindcss()],
  // A proxy may serve the console below a path.
  base: './',
  define: { READY_SETS: JSON.stringify(READY_SETS) },
  build: {
    // The first versions with light-dark().
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A data: address is refused by the Content-Security-Policy.
    assetsInlineLimit: 0,
    // An inline script would be refused too, and every supported browser preloads modules.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // People who start the server do not need the time of each plugin.
    rolldownOptions: {
      checks: { pluginTimings: false },
      input: {
        index: path.join(import.meta.dirname, 'index.html'),
        'service-worker': path.join(import.meta.dirname, 'src/service-worker/service-worker.ts'),
      },
      // A browser looks for a new version of a service worker at the same address.
      output: {
        entryFileNames: ({ name }) => (name === 'service-worker' ? '[name].js' : 'assets/[name]-[hash].js'),
        // The shortest hash that Vite accepts, because the first script names all parts, and hashes cannot be compressed.
        chunkFileNames: 'assets/[name]-[hash:7].js',
      },
    },
  },
  server: { proxy: { '/operator': 'http://localhost:4680', '/invitation': 'http://localhost:4680' } },
})
