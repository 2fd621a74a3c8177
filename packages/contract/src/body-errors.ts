/** Errors any JSON body can cause before its content is checked. */
export const BODY_ERRORS = [
  'body_too_large',
  'unsupported_media_type',
  'invalid_json',
  'invalid_utf8',
  'invalid_encoding',
] as const
