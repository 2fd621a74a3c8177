import { createServer } from 'vite'

const vite = await createServer({ server: { middlewareMode: true }, appType: 'custom', logLevel: 'error' })
const { render, end } = await vite.ssrLoadModule('/entry.js')
console.log(await render())
await end()
await vite.close()
