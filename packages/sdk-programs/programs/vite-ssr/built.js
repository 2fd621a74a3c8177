import { end, render } from './dist/entry.js'

console.log(await render())
await end()
