/** What can be wrong with any JSON body before its content is looked at. */
export const BODY_ERRORS = [
  'body_too_large',
  'unsupported_media_type',
  'invalid_json',
  'invalid_utf8',
  'invalid_encoding',
] as const
