/** Counted before decoding: two bytes can become a message of several objects. */
import type { DescMessage } from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'

export class TooMany extends Error {}

/** The decoder refuses deeper messages. */
const LEVELS_MAX = 100

const embedded = new WeakMap<DescMessage, ReadonlyMap<number, DescMessage>>()

export class MessageCount {
  #left: number

  constructor(most: number) {
    this.#left = most
  }

  /** Throws TooMany. The count ends at what cannot be read, which is not decoded. */
  add(bytes: Uint8Array, schema: DescMessage): void {
    try {
      this.#addWithin(bytes, schema, 0)
    } catch (error) {
      if (error instanceof TooMany) throw error
    }
  }

  #addWithin(bytes: Uint8Array, schema: DescMessage, level: number): void {
    const messages = messagesIn(schema)
    const reader = new BinaryReader(bytes)
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag()
      const message = wireType === WireType.LengthDelimited ? messages.get(field) : undefined
      if (message === undefined) {
        reader.skip(wireType, field)
        continue
      }
      this.#left -= 1
      if (this.#left < 0) throw new TooMany()
      const content = reader.bytes()
      if (level < LEVELS_MAX) this.#addWithin(content, message, level + 1)
    }
  }
}

function messagesIn(schema: DescMessage): ReadonlyMap<number, DescMessage> {
  let found = embedded.get(schema)
  if (found === undefined) {
    found = new Map(schema.fields.flatMap(({ number, message }) => (message ? [[number, message] as const] : [])))
    embedded.set(schema, found)
  }
  return found
}
