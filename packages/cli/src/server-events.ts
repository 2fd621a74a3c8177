/** Server-sent events of a reply, as they arrive (WHATWG HTML, 9.2.6); comments are left out. */
export interface ServerEvent {
  event: string
  /** The data as text. */
  data: string
}

export async function* serverEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true })
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const found = parsed(text.slice(0, end))
      text = text.slice(end + 2)
      if (found) yield found
    }
  }
}

function parsed(block: string): ServerEvent | null {
  let event = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    const [, field = '', value = ''] = /^([^:]+): ?(.*)$/.exec(line) ?? []
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
  }
  return data.length === 0 ? null : { event, data: data.join('\n') }
}
