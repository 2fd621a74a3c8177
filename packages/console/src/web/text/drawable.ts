const IMAGE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$/
/** 1 MiB of an image. An SVG is none: it is a document. */
const CHARS_MAX = 1_398_200

/** Whether an address is an image that lies in it and that may be drawn. No other is ever loaded. */
export const drawable = (address: string): boolean => address.length <= CHARS_MAX && IMAGE.test(address)
