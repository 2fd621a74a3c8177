import { create, toBinary } from '@bufbuild/protobuf'
import { ReplySchema } from './otlp_pb.ts'

export interface PartialSuccess {
  rejected: number
  errorMessage: string
}

export function protobufReply(partial: PartialSuccess | null): Buffer {
  const partialSuccess = partial && { ...partial, rejected: BigInt(partial.rejected) }
  return Buffer.from(toBinary(ReplySchema, create(ReplySchema, partialSuccess ? { partialSuccess } : {})))
}
