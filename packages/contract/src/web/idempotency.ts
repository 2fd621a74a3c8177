import Type from 'typebox'

export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key'

/** Marks a reply as the stored one of the first request with its key. */
export const REPLAYED_HEADER = 'Idempotency-Replayed'

/** Header of every endpoint that creates something. */
export const CreationHeaders = Type.Object({
  [IDEMPOTENCY_KEY_HEADER]: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[ -~]+$',
      description:
        'Any printable ASCII text; use a new one for each thing you create. A retry within 24 hours creates nothing and gets the first ' +
        'reply, with the header Idempotency-Replayed',
    }),
  ),
})
