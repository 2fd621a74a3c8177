import { Lexer, Tokenizer, type Token, type Tokens } from 'marked'

class BoundedTables extends Tokenizer {
  /** Limit tables: rows are padded to the width of the header, so 10,000 characters could make three million cells. */
  override table(src: string): Tokens.Table | undefined {
    const [written = '', header = '', , rows = ''] = this.rules.block.table.exec(src) ?? []
    const cells = header.split('|').length * rows.split('\n').length
    return cells > written.length ? undefined : super.table(src)
  }
}

/** Null if parts are nested thousands deep. */
export function tokensOf(text: string): Token[] | null {
  try {
    return new Lexer({ gfm: true, breaks: true, tokenizer: new BoundedTables() }).lex(text)
  } catch {
    return null
  }
}
