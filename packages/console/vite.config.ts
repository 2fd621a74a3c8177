import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), tailwindcss()],
  build: {
    // The first versions with light-dark().
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A data: address is refused by the Content-Security-Policy.
    assetsInlineLimit: 0,
    // An inline script would be refused too, and every supported browser preloads modules.
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // People who start the server do not need the time of each plugin.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  server: { proxy: { '/operator': 'http://localhost:4680', '/invitation': 'http://localhost:4680' } },
})
