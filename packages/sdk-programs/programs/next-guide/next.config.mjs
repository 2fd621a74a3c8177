import path from 'node:path'

const home = path.dirname(import.meta.dirname)

export default { turbopack: { root: home } }
