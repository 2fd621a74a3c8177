import path from 'node:path'

const home = path.dirname(import.meta.dirname)

export default { cacheComponents: true, turbopack: { root: home }, outputFileTracingRoot: home }
