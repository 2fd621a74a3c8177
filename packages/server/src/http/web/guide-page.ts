import path from 'node:path'
import MarkdownIt from 'markdown-it'

export type GuidePages = ReadonlyMap<string, string>

export interface Source {
  file: string
  text: string
}

type Token = ReturnType<InstanceType<typeof MarkdownIt>['parse']>[number]

// HTML is allowed because our own pages use <br> in tables.
const markdown = new MarkdownIt({ html: true })

export function renderPage(pages: GuidePages, page: Source, front: Source): string {
  const tokens = markdown.parse(page.text, {})
  nameHeadings(tokens)
  pointLinks(tokens, pages, page.file)
  const main = markdown.renderer.render(tokens, markdown.options, {})
  return wholePage({ address: pages.get(page.file) ?? '', title: titleOf(page.text), main, query: '' }, pages, front)
}

export interface Hit {
  address: string
  title: string
  /** The line that contains the words, or their beginning. */
  line: string
}

export function renderHits(pages: GuidePages, query: string, hits: readonly Hit[], front: Source): string {
  const { escapeHtml } = markdown.utils
  const items = hits.map(({ address, title, line }) => {
    return `<li><a href="${address}">${escapeHtml(title)}</a><br>${escapeHtml(line)}</li>\n`
  })
  const hitList = items.length === 0 ? '<p>No page has all these words.</p>\n' : `<ul>\n${items.join('')}</ul>\n`
  const title = `Search: ${query}`
  const main = `<h1>${escapeHtml(title)}</h1>\n${hitList}`
  return wholePage({ address: pages.get(front.file) ?? '', title, main, query }, pages, front)
}

export function titleOf(text: string): string {
  return (/^# (.+)$/m.exec(text)?.[1] ?? 'Docs').replaceAll('`', '')
}

interface Page {
  address: string
  title: string
  main: string
  query: string
}

function wholePage({ address, title, main, query }: Page, pages: GuidePages, front: Source): string {
  const { escapeHtml } = markdown.utils
  // Relative, because a proxy may serve the docs below a path.
  const root = '../'.repeat(address.split('/').length - 2)
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Tacho</title>
<link rel="icon" href="/docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/docs/look.css">
<link rel="stylesheet" href="/docs/guide.css">
</head>
<body>
<header><a class="home" href="/docs/guide">Tacho docs</a><nav><a href="/docs">API reference</a><a href="/">Console</a></nav></header>
<div class="columns">
<nav class="pages" aria-label="Pages">
<form action="/docs/guide" role="search"><input type="search" name="q" value="${escapeHtml(query)}" maxlength="200" placeholder="Search the docs" aria-label="Search the docs"></form>
<details><summary>All pages</summary>
${pageList(pages, front, address)}</details>
</nav>
<main>
${main}</main>
</div>
</body>
</html>
`
  return html.replaceAll(/ (href|src|action)="\//g, ` $1="${root}`)
}

/** Uses GitHub's ids, so that one link works in both places. */
function nameHeadings(tokens: Token[]): void {
  const used = new Map<string, number>()
  tokens.forEach((token, index) => {
    if (token.type !== 'heading_open') return
    const text = tokens[index + 1]?.content ?? ''
    const slug = text
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = used.get(slug) ?? 0
    used.set(slug, count + 1)
    token.attrSet('id', count === 0 ? slug : `${slug}-${count}`)
  })
}

function pointLinks(tokens: readonly Token[], pages: GuidePages, file: string): void {
  for (const { children } of tokens) {
    for (const token of children ?? []) {
      if (token.type === 'image') token.attrSet('src', `/docs/guide/pictures/${path.basename(textOf(token, 'src'))}`)
      const target = token.type === 'link_open' ? textOf(token, 'href') : ''
      if (target === '' || target.startsWith('#') || URL.canParse(target)) continue
      const [to = '', anchor] = target.split('#')
      const linkedFile = path.resolve(path.dirname(file), to)
      const address = pages.get(linkedFile) ?? pages.get(path.join(linkedFile, 'README.md'))
      if (address !== undefined) token.attrSet('href', anchor === undefined ? address : `${address}#${anchor}`)
      else token.attrs = [['title', `In the repository: ${target.replaceAll('../', '')}`]]
    }
  }
}

const textOf = (token: Token, attribute: string): string => String(token.attrGet(attribute) ?? '')

function pageList(pages: GuidePages, front: Source, current: string): string {
  const tokens = markdown.parse(front.text, {})
  pointLinks(tokens, pages, front.file)
  let list = ''
  const listed = new Set<string>()
  tokens.forEach(({ type, tag, children }, index) => {
    if (type === 'heading_open' && tag === 'h2') list += `<h2>${tokens[index + 1]?.content ?? ''}</h2>\n`
    for (const [at, token] of (children ?? []).entries()) {
      // Only links at the start of a list item; links in its explanation follow other words.
      if (token.type === 'text' && token.level === 0 && token.content !== ', ') break
      if (token.type !== 'link_open') continue
      const href = textOf(token, 'href')
      const [target = ''] = href.split('#')
      if (listed.has(target)) continue
      listed.add(target)
      const mark = href === current ? ' aria-current="page"' : ''
      list += `<a href="${href}"${mark}>${markdown.utils.escapeHtml(children?.[at + 1]?.content ?? '')}</a>\n`
    }
  })
  return list
}
