/** The networks from which a key or token is valid. The server checks them. */
export const ALLOW_FROM = 'addresses and networks from which it is valid, separated by commas; default: anywhere'

const ANYWHERE = 'anywhere'

export const networksFrom = (given: string): string[] => given.split(',').map((part) => part.trim())

export const networksOrAny = (given: string): string[] | null => (given === ANYWHERE ? null : networksFrom(given))

export const allowedFrom = ({ allowedAddresses }: { allowedAddresses: string[] | null }): string =>
  allowedAddresses?.join(',') ?? ANYWHERE
