import path from 'node:path'

const home = path.dirname(import.meta.dirname)

/** The packages are in the folder above. */
export default process.env.NEXT_MAJOR === '14' ? {} : { turbopack: { root: home }, outputFileTracingRoot: home }
