/** Pages without a framework, from a bare HTTP server. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

/** Starts a server whose page only loads this script. */
export async function startBarePage(script: string) {
  const server = http.createServer(({ url }, reply) => {
    const isScript = url === '/script.js'
    reply.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    reply.end(isScript ? script : '<!doctype html><body><script type="module" src="/script.js"></script>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, [Symbol.asyncDispose]: async () => void server.close() }
}

/** A script of this size that shows a link. */
export function scriptOf(bytes: number): string {
  return `document.body.innerHTML = '<nav><a href="/">Runs</a></nav>'; const text = '${'x'.repeat(bytes)}'`
}

/** A list of 30,000 equal rows that draws only the visible ones; j selects the next row. */
export const LIST_SCRIPT = `
const [COUNT, ROW, MORE] = [30000, 32, 12]
document.body.style.margin = 0
document.body.innerHTML = '<div id="box" style="height: 100vh; overflow-y: auto"><div id="all" style="position: relative"></div></div>'
const [box, all] = [document.getElementById('box'), document.getElementById('all')]
all.style.height = COUNT * ROW + 'px'
const rows = new Map()
let selected = -1
function draw() {
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - MORE)
  const last = Math.min(COUNT - 1, Math.ceil((box.scrollTop + innerHeight) / ROW) + MORE)
  for (const [index, row] of rows) if (index < first || index > last) rows.delete(index), row.remove()
  for (let index = first; index <= last; index++) {
    if (!rows.has(index)) {
      const row = document.createElement('div')
      row.role = 'listitem'
      row.ariaSetSize = COUNT
      row.style.cssText = 'position: absolute; height: 31px; border-bottom: 1px solid; inset-inline: 0; top: ' + index * ROW + 'px'
      row.textContent = 'Step ' + index
      rows.set(index, row)
      all.append(row)
    }
    rows.get(index).style.background = index === selected ? 'lightblue' : ''
  }
}
box.addEventListener('scroll', draw)
addEventListener('keydown', ({ key }) => {
  if (key !== 'j') return
  selected++
  const top = selected * ROW
  if (top < box.scrollTop) box.scrollTop = top
  else if (top + ROW > box.scrollTop + innerHeight) box.scrollTop = top + ROW - innerHeight
  draw()
})
draw()
`
