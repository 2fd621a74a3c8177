/**
 * Renders recorded Markdown with our own elements. It comes from agents and strangers, so HTML in it stays text, images
 * are shown only if the text contains their data, and links show their address. Loaded with the first message that
 * needs it.
 */
import type { Token, Tokens } from 'marked'
import { useMemo, type ReactNode } from 'react'
import { tokensOf } from './markdown-tokens.ts'
import { SentImage } from './long-text.tsx'
import { ShownText } from './shown-text.tsx'

/** Parts that are nested deeper are shown as source text. */
const DEEPEST = 12

export default function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => tokensOf(text), [text])
  if (tokens === null) return <ShownText text={text} lineBreaks />
  return <div className="flex flex-col gap-2 whitespace-normal">{drawn(tokens, 0)}</div>
}

const drawn = (tokens: readonly Token[] | undefined, depth: number): ReactNode =>
  // The index is the key, because parts have no other identity.
  tokens?.map((token, at) => <Part key={at} token={token} depth={depth + 1} />)

const Plain = ({ text }: { text: string }) => <ShownText text={text} lineBreaks />

function Part({ token, depth }: { token: Token; depth: number }) {
  if (depth > DEEPEST) return <Plain text={token.raw} />
  const inside = 'tokens' in token ? drawn(token.tokens, depth) : null
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'br':
      return <br />
    case 'hr':
      return <hr className="border-line" />
    case 'paragraph':
      return <p>{inside}</p>
    case 'heading':
      // Not a heading element, because clients would then control the page's outline.
      return <p className="font-semibold">{inside}</p>
    case 'strong':
      return <strong>{inside}</strong>
    case 'em':
      return <em>{inside}</em>
    case 'del':
      return <del>{inside}</del>
    case 'codespan':
      return (
        <code className="rounded bg-hover px-1 font-mono text-[0.9em]">
          <Plain text={(token as Tokens.Codespan).text} />
        </code>
      )
    case 'code':
      return (
        <pre tabIndex={0} className="overflow-x-auto rounded-md bg-hover px-3 py-2 font-mono text-[0.8125rem]">
          <Plain text={(token as Tokens.Code).text} />
        </pre>
      )
    case 'blockquote':
      return <blockquote className="flex flex-col gap-2 border-l-2 border-line pl-3 text-soft">{inside}</blockquote>
    case 'list':
      return <List list={token as Tokens.List} depth={depth} />
    case 'checkbox':
      return (token as Tokens.Checkbox).checked ? '☑ ' : '☐ '
    case 'table':
      return <Table table={token as Tokens.Table} depth={depth} />
    case 'link':
      return <Link link={token as Tokens.Link}>{inside}</Link>
    case 'image':
      return <SentImage address={(token as Tokens.Image).href} text={(token as Tokens.Image).text} />
    case 'text':
    case 'escape':
      return inside ?? <Plain text={(token as Tokens.Text).text} />
    default:
      return <Plain text={token.raw} />
  }
}

function List({ list: { ordered, start, items }, depth }: { list: Tokens.List; depth: number }) {
  const rows = items.map((item, at) => <li key={at}>{drawn(item.tokens, depth)}</li>)
  if (!ordered) return <ul className="list-disc pl-5">{rows}</ul>
  return (
    <ol start={Number(start) || 1} className="list-decimal pl-6">
      {rows}
    </ol>
  )
}

function Table({ table: { header, rows }, depth }: { table: Tokens.Table; depth: number }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: 'td' | 'th') => (
    <tr className="border-b border-line">
      {row.map(({ tokens }, at) => (
        <Cell key={at} className="px-2 py-1 text-left align-top">
          {drawn(tokens, depth)}
        </Cell>
      ))}
    </tr>
  )
  return (
    <div tabIndex={0} className="overflow-x-auto">
      <table className="text-sm">
        <thead>{cells(header, 'th')}</thead>
        <tbody>
          {rows.map((row, at) => (
            <Rows key={at}>{cells(row, 'td')}</Rows>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const Rows = ({ children }: { children: ReactNode }) => children

/** A link followed by its address, unless its text is the address. The host is in ASCII. */
function Link({ link: { href, text }, children }: { link: Tokens.Link; children: ReactNode }) {
  const address = webAddress(href)
  if (address === null) {
    return (
      <>
        {children} (<Plain text={href} />)
      </>
    )
  }
  const isSaid = text === href && address.replace(/\/$/, '') === href.replace(/\/$/, '')
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow" className="link wrap-anywhere">
      {isSaid ? (
        address
      ) : (
        <>
          {children} <span className="text-soft">({address})</span>
        </>
      )}
    </a>
  )
}

function webAddress(href: string): string | null {
  const url = URL.parse(href)
  return url !== null && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href : null
}
