import Type from 'typebox'

export const IDEMPOTENCY_KEY_HEADER = 'Idempotency-Key'

/** Tells that a reply is the one of the first request with its key. */
export const REPLAYED_HEADER = 'Idempotency-Replayed'

/** Of every endpoint that creates something. */
export const CreationHeaders = Type.Object({
  [IDEMPOTENCY_KEY_HEADER]: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 255,
      pattern: '^[ -~]+$',
      description:
        'Any text, a new one for each thing to create. A repeat within 24 hours creates nothing and gets the reply of the ' +
        'first request, with the header Idempotency-Replayed',
    }),
  ),
})
