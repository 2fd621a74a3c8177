import { Lexer, Tokenizer, type Token, type Tokens } from 'marked'

class BoundedTables extends Tokenizer {
  /** Rows are filled up to the width of the header: 10,000 characters made three million cells. */
  override table(src: string): Tokens.Table | undefined {
    const [written = '', header = '', , rows = ''] = this.rules.block.table.exec(src) ?? []
    const cells = header.split('|').length * rows.split('\n').length
    return cells > written.length ? undefined : super.table(src)
  }
}

/** Null: parts of it lie thousands deep in each other. */
export function tokensOf(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true, breaks: true, tokenizer: new BoundedTables() }).lex(text)
  } catch {
    return null
  }
}
